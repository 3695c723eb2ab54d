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


# One partition goes from acceptance to a worker of a device like this: its request is decoded and gets its parameters
# (PARAMS_END), then the partition waits until it is its turn at the witness workers and there is a place for one more
# witness ahead of the devices (SYNTH_START), its witness is computed (SYNTH_END), and it waits for a worker (GPU_QUEUE to
# GPU_PICKUP), who has it until FINISH_END.
class Partition:
    def __init__(self):
        self.at, self.synth_worker, self.worker = {}, None, None

    def held(self):
        """From when to when a worker had it."""
        return self.at["GPU_PICKUP"], self.at.get("FINISH_END", float("inf"))

    def synthesis(self):
        return self.at["SYNTH_START"], self.at.get("SYNTH_END", float("inf"))


def partitions(events):
    """What is known of each partition, by request and number; and when each request's were ready to be begun."""
    known, ready = {}, {}
    for at, kind, request, partition, device, worker in events:
        if kind == "PARAMS_END":
            ready[request] = at
        elif partition >= 0:
            p = known.setdefault((request, partition), Partition())
            if kind in p.at and kind in ("SYNTH_START", "SYNTH_END", "GPU_QUEUE", "GPU_PICKUP"):
                continue  # tried again: the first time counts
            p.at[kind] = at
            if kind == "SYNTH_START":
                p.synth_worker = worker
            elif kind == "GPU_PICKUP":
                p.worker = device, worker
    return known, ready


def overlaps(span, begin, end):
    return span[0] < end and span[1] > begin


def check_priorities(timeline, wanted):
    """
    A critical partition waits for partitions that run when it could be begun, at most one a worker, for the witness as for
    the device. The device's workers take others meanwhile as long as its witness is not there: one, which makes the place
    for the witness if all places ahead of the devices are taken, and those that are taken while witnesses of critical ones
    are computed. Gives how many were looked at, and how many others went ahead at most.
    """
    critical = {r.request_id for r in wanted if r.priority == 4}
    is_critical = lambda key: key[0].rsplit(".", 1)[0] in critical
    looked_at, most = 0, 0
    for events in timeline.events.values():
        known, ready = partitions(events)
        others = [p for key, p in known.items() if not is_critical(key)]
        syntheses = [p.synthesis() for key, p in known.items() if is_critical(key) and "SYNTH_START" in p.at]
        for key, p in known.items():
            if not is_critical(key) or key[0] not in ready or not {"SYNTH_START", "GPU_QUEUE", "GPU_PICKUP"} <= p.at.keys():
                continue
            looked_at += 1
            begin, queued, end = ready[key[0]], p.at["GPU_QUEUE"], p.at["GPU_PICKUP"]
            once = lambda workers: len(set(workers)) == len(workers)

            witnesses = [o for o in others if "SYNTH_START" in o.at and overlaps(o.synthesis(), begin, p.at["SYNTH_START"])]
            assert once([o.synth_worker for o in witnesses]), f"{key} waited from {begin} ms for {len(witnesses)} witnesses"

            taken = [o for o in others if "GPU_PICKUP" in o.at and overlaps(o.held(), begin, end)]
            running = [o for o in taken if o.at["GPU_PICKUP"] <= begin]
            assert once([o.worker for o in running])
            assert once([o.worker for o in taken if overlaps(o.held(), queued, end)]), f"{key} waited from {queued} to {end} ms for {len(taken)} others"
            passed = [o for o in taken if o.at["GPU_PICKUP"] > begin]
            assert all(o.at["GPU_PICKUP"] <= queued for o in passed), f"{key} was passed while it was ready, from {queued} to {end} ms"
            for_the_place = [o for o in passed if not any(b <= o.at["GPU_PICKUP"] <= e for b, e in syntheses)]
            assert len(for_the_place) <= 1, f"{key} was passed by {len(for_the_place)} from {begin} to {queued} ms"
            most = max(most, len(taken))
    return looked_at, most


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
        late = [r for r in wanted if r.priority == pb.CRITICAL][::2]  # they find the others at work
        calls = {r.request_id: pool.submit(client.Prove, pb.ProveRequest(submit=r)) for r in wanted if r not in late}
        for r in late:
            time.sleep(rng.uniform(0.1, 3))
            calls[r.request_id] = pool.submit(client.Prove, pb.ProveRequest(submit=r))
        answers = [calls[r.request_id] for r in wanted]
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
    looked_at, ahead = check_priorities(timeline, wanted)
    criticals = sum(r.priority == pb.CRITICAL for r in wanted)
    assert looked_at >= criticals * 3 // 4  # a killed plugin takes its last second with it
    queue = sorted(r.queue_wait_ms for w, r in zip(wanted, results) if w.priority == pb.CRITICAL)
    print(f"{REQUESTS} requests with {KILLS} kills in {time.monotonic() - started:.0f} s; memory at most {100 * watcher.worst_memory:.0f} % of the budget;"
          f" critical ones waited {queue[len(queue) // 2] if queue else 0} ms in the middle, {queue[-1] if queue else 0} ms at most,"
          f" and {looked_at} partitions of them, from acceptance on, for {ahead} others at most")
    assert s.stop() == 0
