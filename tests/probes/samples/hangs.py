"""Ignores SIGTERM and sleeps, and so does the process it starts, whose pid it tells."""

NEEDS = {}
TIMEOUT = 10


def measure(request, stage):
    import signal
    import subprocess
    import sys
    import time

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code])
    yield {"pid": process.pid}
    stage("sleeping")
    time.sleep(60)
