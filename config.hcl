# Configuration of Interlock. As it stands it proves on the CPU, on any machine.
#
# Every setting there is appears below. Those behind a "#" without a space are
# examples: remove the "#" to use them. Where a setting has a default, that is
# what the example shows, unless it says otherwise. An empty file is valid.
#
# Sizes are written "512MiB", "5GiB"; durations "30s", "5m"; CPU sets "0-7,16".
# Paths are relative to this file. To check what you wrote:
#
#   interlock config check config.hcl
#
# Rigs to start from are in examples/.

# The CPU as a device. It proves where no gpu block is written; beside GPUs,
# write this block only if it shall prove too.
cpu {
  #enabled = true

  # Partitions that it carries at once. One computes, the others prepare and
  # finish meanwhile.
  workers = 2

  # Threads that compute. Default: one on each CPU.
  #threads = 16

  # CPUs that it runs on. Default: all.
  #cpus = "0-15"
}

# A card, one block each. The label is an index as nvidia-smi numbers cards, a
# UUID ("GPU-2d990430-f243-2137-3cfb-69a61ff03be6") or a PCI address
# ("0000:41:00.0"); `nvidia-smi -L` lists cards.
#gpu "0" {
  # Partitions that the card carries at once. One runs its kernels, the others
  # prepare and finish meanwhile. One worker leaves the card idle a third of
  # the time; more than two seldom gain anything.
  #workers = 2

  # CPUs of the card's workers, best those of its NUMA node (`nvidia-smi topo
  # -m` lists them). Sets of different devices must not overlap. Default: all.
  #cpus = "16-23"

  # How much of the card's memory may be used. Default: all.
  #memory_limit = "16GiB"
#}

# How the cards are reached, and what becomes of their work if they fail.
cuda {
  # The library with the kernels. Default: libinterlock_cuda.so beside the
  # plugin's program, or else where the dynamic loader finds it.
  #library = "/usr/lib/interlock/libinterlock_cuda.so"

  # Whose partitions the CPU proves when no card can: "never" lets them wait for
  # a card, "critical-only" has it prove those of critical priority, by default
  # winning PoSt, and "always" all of them. A large partition takes the CPU many
  # minutes and much of its memory.
  #fallback = "critical-only"
}

memory {
  # What the plugin may use of the machine's memory altogether: a size, or a
  # percentage of what the machine and the control group allow.
  #budget = "80%"

  # The part of the budget that is kept free for what is not counted: a size,
  # or a percentage of the budget.
  #margin = "10%"
}

parameters {
  # Folder of parameter files. Default: the environment variable
  # FIL_PROOFS_PARAMETER_CACHE, else /var/tmp/filecoin-proof-parameters.
  #dir = "/var/tmp/filecoin-proof-parameters"

  # Circuits whose parameters are loaded at the start rather than by the first
  # request, in this order, and make room for others last. One that is missing
  # or wrong keeps the plugin from starting, except for single commands. Kinds:
  # porep, winning-post, window-post, update; sizes: 2KiB, 4KiB, 16KiB, 32KiB,
  # 8MiB, 512MiB, 32GiB, 64GiB. Default: none.
  #preload = ["winning-post:32GiB", "window-post:32GiB"]

  # How closely a file is checked when it is loaded: "structure" for lengths
  # and counts (milliseconds), "full" for every point as well (minutes for the
  # large circuits, but once only: what was found is kept in a file beside it,
  # named .verified, and holds as long as size and time stay the same).
  #verify = "structure"

  # File with the digests of parameter files, in the format of the original
  # proofs library's parameters.json. Verifying keys must be listed there when
  # they are loaded, parameter files when they are checked with "full" or by
  # `interlock params verify`. Default: none.
  #manifest = "/etc/interlock/parameters.json"
}

# Priority of requests that do not name one: "low", "normal", "high" or
# "critical". Higher ones go first, partition by partition.
priority {
  #winning-post = "critical"
  #window-post  = "high"
  #porep        = "normal"
  #update       = "normal"
}

# The pool that computes witnesses, on the CPU.
witness {
  # Partitions that are worked on at once.
  #workers = 2

  # Threads that they share. Default: one on each CPU.
  #threads = 16

  # Partitions whose witness is being computed or waits for a device. More
  # keep devices busier and take more memory. Default: the number of devices,
  # at least workers.
  #ahead = 2
}

# The record of who did what when, for `interlock timeline`.
timeline {
  # How many of the latest events are kept, of about 64 bytes each. 0 keeps
  # none.
  #events = 65536

  # File that they are written to as text when a plugin ends that has proven
  # something, instead of what it held. Default: none.
  #file = "/var/log/interlock/timeline.txt"
}

log {
  # "trace", "debug", "info", "warn" or "error".
  #level = "info"

  # "text" or "json".
  #format = "text"

  # File that the plugin appends its messages to, besides handing them to the
  # host. Default: none.
  #file = "/var/log/interlock/prover.log"
}

# The plugin's program, and how long the host waits for its process.
plugin {
  # SHA-256 of the program, as sha256sum prints it; another program is not
  # started. Default: any program is.
  #sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

  # Until it answers, once started. What parameters.preload names is loaded
  # within that time: allow more for large sets on slow disks.
  #start_timeout = "1m"

  # Until it has ended its work, once told to stop; then it is killed.
  #stop_timeout = "30s"

  # Whether the plugin of `interlock serve` outlives it, so that the next one
  # finds it at its work. That needs a journal, in whose folder "plugin" it has
  # its key, socket and log (of 16 MiB, and the one before). Without a host it
  # ends after detach_idle.
  #detach      = false
  #detach_idle = "1h"
}

# When `interlock serve` gives a plugin process up, and how soon it starts the
# next. What the first had not answered goes to the next; requests that it was
# at work on are tried again one at a time.
supervision {
  # How often the plugin is asked whether it serves, and how long it may take
  # to answer before it counts as hung and is killed.
  #probe_interval = "5s"
  #probe_timeout  = "30s"

  # How long a plugin with requests may go without a step forward in any of
  # them before it counts as hung. The longest step of a large partition takes
  # seconds on a card and many minutes on a few CPUs.
  #progress_timeout = "30m"

  # How long after a plugin's end the next is started. Each further end doubles
  # the wait, up to max_backoff.
  #backoff     = "500ms"
  #max_backoff = "1m"

  # How many plugins may end in a row, none having answered a request or lived
  # for crash_window. After one more, requests are refused for cool_down, and
  # those accepted before wait.
  #crash_limit  = 5
  #crash_window = "5m"
  #cool_down    = "5m"

  # How many plugins may end while they work on one request alone, before that
  # is set aside with an error.
  #attempts = 2
}

# Requests that have a deadline, as those of cuzk.v1's Prove have. One whose
# deadline has passed is given up, or refused. Read anew by SIGHUP.
deadline {
  # Whether `interlock serve` refuses a request whose deadline is nearer than the
  # shortest time that one of the same kind and sector size took since its start.
  # It would have to be faster than any before; refused at once, it takes no device
  # from others.
  #refuse_hopeless = false
}

# Requests that `interlock serve` has accepted, and their answers, on disk: they
# outlive its process.
journal {
  # Folder for them alone. Default: none, and no journal.
  #dir = "/var/lib/interlock/journal"

  # How long an answer is kept.
  #retention = "24h"
}
