"""Ignores SIGTERM and sleeps, and so does the process it starts, whose pid it tells, both in a file."""

NEEDS = {}
TIMEOUT = 10


def measure(request, stage):
    import os
    import signal
    import subprocess
    import sys
    import time

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code])
    if request.get("tell_file"):
        with open(request["tell_file"], "w", encoding="utf-8") as stream:
            stream.write(f"{os.getpid()} {process.pid}\n")
    yield {"pid": process.pid}
    stage("sleeping")
    time.sleep(60)
