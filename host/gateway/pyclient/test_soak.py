"""Many requests of all kinds and priorities at once while the plugin is killed: INTERLOCK_SOAK says how many."""

import concurrent.futures
import json
import os
import random
import signal
import threading
import time
import urllib.request

from conftest import Server
from test_cuzk import completed, porep, update, verify, window, window_files, winning, post_flags, wait_until

REQUESTS = int(os.environ.get("INTERLOCK_SOAK", "20"))
KILLS = 3 if REQUESTS >= 100 else 1
SEED = int(os.environ.get("INTERLOCK_SOAK_SEED", str(random.randrange(1 << 32))))


def requests(pb, rng):
    """Nine of ten are PoSt; of the rest half are PoRep, half updates."""
    others = max(2, REQUESTS // 10)
    made = [porep(pb, request_id=f"soak-{i}") for i in range(others // 2)]
    made += [update(pb, request_id=f"soak-{i}") for i in range(others // 2, others)]
    for i in range(others, REQUESTS):
        make = rng.choice([lambda **c: winning(pb, **c), lambda **c: window(pb, 0, **c), lambda **c: window(pb, 1, **c)])
        made.append(make(request_id=f"soak-{i}"))
    for r in made:
        r.priority = pb.CRITICAL if r.proof_kind == pb.WINNING_POST else rng.choice([pb.LOW, pb.NORMAL, pb.HIGH])
    rng.shuffle(made)
    return made


class Watcher(threading.Thread):
    """Looks at the server now and then."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.over, self.worst_memory, self.plugins = server, threading.Event(), 0.0, set()

    def status(self):
        with urllib.request.urlopen(f"http://{self.server.http}/api/status", timeout=20) as page:
            return json.load(page)

    def run(self):
        while not self.over.wait(0.3):
            s = self.status()
            if s["pid"]:
                self.plugins.add(s["pid"])
            if budget := s["memory"]["budget_bytes"]:
                self.worst_memory = max(self.worst_memory, s["memory"]["used_bytes"] / budget)


class Timeline(threading.Thread):
    """Follows what the status page is told of the timeline, through every plugin."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.over, self.events = server, threading.Event(), {}  # by the plugin's start, in the order of time

    def run(self):
        with urllib.request.urlopen(f"http://{self.server.http}/api/events", timeout=30) as stream:
            name = ""
            for line in stream:
                if self.over.is_set():
                    return
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data" and name == "timeline":
                    message = json.loads(value)
                    self.events.setdefault(message["start"], []).extend(message["events"])


def waits(events):
    """Of each partition: from when to when it waited for a worker of a device, and how long it held which worker."""
    queued, taken, waited, held = {}, {}, {}, {}
    for at, kind, request, partition, device, worker in events:
        key = request, partition
        if kind == "GPU_QUEUE":
            queued[key] = at
        elif kind == "GPU_PICKUP":
            taken[key] = at
            if key in queued:
                waited[key] = queued.pop(key), at
        elif kind == "FINISH_END" and key in taken:
            held[key] = (device, worker), taken.pop(key), at
    return waited, held


def check_priorities(timeline, wanted):
    """A critical partition waits for no more than one other partition per worker, the one that was running. Gives how many were looked at."""
    critical = {r.request_id for r in wanted if r.priority == 4}
    is_critical = lambda key: key[0].rsplit(".", 1)[0] in critical
    looked_at = 0
    for events in timeline.events.values():
        waited, held = waits(events)
        for key, (begin, end) in waited.items():
            if not is_critical(key):
                continue
            looked_at += 1
            ahead = {}
            for other, (worker, taken, over) in held.items():
                if not is_critical(other) and taken < end and over > begin:
                    ahead.setdefault(worker, []).append(other)
            assert all(len(others) <= 1 for others in ahead.values()), f"{key} waited from {begin} to {end} ms for {ahead}"
    return looked_at


def test_soak(pb, params, tmp_path):
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    s = Server(params, str(tmp_path / "log"), "--journal", str(tmp_path / "journal"))
    watcher = Watcher(s)
    watcher.start()
    timeline = Timeline(s)
    timeline.start()
    started = time.monotonic()
    with s.connect() as channel, concurrent.futures.ThreadPoolExecutor(REQUESTS) as pool:
        client = pb.Stub(channel)
        wanted = requests(pb, rng)
        answers = [pool.submit(client.Prove, pb.ProveRequest(submit=r)) for r in wanted]
        for kill in range(KILLS):
            # In the middle of the work: a part of the requests is answered, another is not.
            goal = REQUESTS * (kill + 1) // (KILLS + 2)
            wait_until(lambda: sum(a.done() for a in answers) >= goal, seconds=1800)
            os.kill(watcher.status()["pid"], signal.SIGKILL)
            wait_until(lambda: watcher.status()["pid"], seconds=60)
        results = [a.result(timeout=3600).result for a in answers]
    time.sleep(2.5)  # the last events are told within two looks
    watcher.over.set()
    watcher.join()
    timeline.over.set()
    timeline.join()

    proofs = {}
    for r, result in zip(wanted, results):
        proofs[r.proof_kind, r.partition_index] = completed(pb, result)
    assert len({r.proof for r in results}) == REQUESTS  # each its own
    assert watcher.worst_memory <= 1
    assert len(watcher.plugins) == KILLS + 1
    for partition in 0, 1:
        if proof := proofs.get((pb.WINDOW_POST_PARTITION, partition)):
            flags = post_flags("window") + ["--api-version", "1.2.0", "--partition", str(partition)]
            assert verify(params, tmp_path, proof, "window-post", *flags, *window_files(partition)) == "valid"
    final = watcher.status()
    assert final["completed"] == REQUESTS and final["failed"] == 0
    looked_at = check_priorities(timeline, wanted)
    criticals = sum(r.priority == pb.CRITICAL for r in wanted)
    assert looked_at >= criticals * 3 // 4  # a killed plugin takes its last second with it
    queue = sorted(r.queue_wait_ms for w, r in zip(wanted, results) if w.priority == pb.CRITICAL)
    print(f"{REQUESTS} requests with {KILLS} kills in {time.monotonic() - started:.0f} s; memory at most {100 * watcher.worst_memory:.0f} % of the budget;"
          f" critical ones waited {queue[len(queue) // 2] if queue else 0} ms in the middle, {queue[-1] if queue else 0} ms at most,"
          f" and {looked_at} partitions of them for at most one running partition per worker")
    assert s.stop() == 0
