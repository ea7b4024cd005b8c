"""Tells its parent, what its parent had imported, and what an earlier child left behind; leaves something itself."""

NEEDS = {}
TIMEOUT = 10


def measure(request, stage):
    import os
    import sys
    import tempfile

    loaded = request["shared"] in sys.modules
    left = os.environ.get("LEFT_BEHIND")
    os.environ["LEFT_BEHIND"] = "by a child"
    with open("beside.txt", "w", encoding="utf-8") as stream:
        stream.write("left in the present folder\n")
    with tempfile.NamedTemporaryFile(delete=False) as stream:
        stream.write(b"left in the temporary folder\n")
    if request.get("kill_parent"):
        import signal
        import time

        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    if request.get("leave_with") is not None:
        sys.exit(request["leave_with"])
    return {"parent": os.getppid(), "loaded": loaded, "left": left, "adjusted": open("/proc/self/oom_score_adj").read()}
