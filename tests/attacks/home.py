"""Others can write to the home or have prepared it, and rotations of the CA are killed: its key must not change hands or be lost."""

import os
import pathlib
import random
import signal
import ssl
import subprocess
import tempfile
import time

from attack import BINARY, Daemon, check, main


def squall(home, *arguments):
    """A command with this home, that ends at once."""
    environment = {**os.environ, "SQUALL_HOME": str(home)}
    return subprocess.run([BINARY, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False)


def refused(home, why):
    """Neither a command nor a daemon uses this home."""
    shown = squall(home, "ca", "show")
    check(shown.returncode == 2 and "SQUALL_HOME" in shown.stderr, f"a home {why} is refused", shown.stderr.strip()[:160])
    try:
        with Daemon(home=home):
            check(False, f"no daemon starts in a home {why}")
    except RuntimeError as ended:
        check("SQUALL_HOME" in str(ended), f"no daemon starts in a home {why}")


def homes(folder):
    """Homes that somebody else could change."""
    home = folder / "open"
    home.mkdir()
    home.chmod(0o777)
    refused(home, "that everybody can write to")
    if os.geteuid() == 0:
        home = folder / "foreign"
        home.mkdir(mode=0o700)
        os.chown(home, 65534, 65534)
        refused(home, "of another user")
    home, victim = folder / "linked", folder / "victim"
    home.mkdir(mode=0o700)
    victim.write_text("precious")
    (home / "daemon-id").symlink_to(victim)
    try:
        with Daemon(home=home) as daemon:
            daemon.ends()
    except RuntimeError:
        pass
    check(victim.read_text() == "precious", "a link in the place of daemon-id is not written through")


def rotations(home, count):
    """Kills `ca rotate` at random moments; the pair must stay usable."""
    squall(home, "ca", "show")
    rng = random.Random(17)
    unusable = 0
    for _ in range(count):
        child = subprocess.Popen(
            [BINARY, "ca", "rotate"],
            env={**os.environ, "SQUALL_HOME": str(home)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(rng.random() * 0.03)
        child.send_signal(signal.SIGKILL)
        child.wait()
        unusable += squall(home, "ca", "show").returncode != 0 or not fits(home)
    check(unusable == 0, "a killed rotation leaves a pair that fits", f"{unusable} of {count} do not")
    keys = [path.name for path in home.iterdir() if b"PRIVATE KEY" in path.read_bytes()]
    check(keys == ["ca.key"], "and no other private key", ", ".join(sorted(keys)))


def fits(home):
    """Whether the key belongs to the certificate."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(home / "ca.pem", home / "ca.key")
    except (ssl.SSLError, OSError):
        return False
    return True


def attack(full):
    with tempfile.TemporaryDirectory(prefix="squall-attack-") as name:
        folder = pathlib.Path(name)
        homes(folder)
        rotations(folder / "home", 120 if full else 10)


if __name__ == "__main__":
    main(attack)
