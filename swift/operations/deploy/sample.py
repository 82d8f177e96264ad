"""The commented inventory that ``swift-deploy init`` writes."""

SAMPLE = """\
# Inventory of a cluster, for swift-deploy. It has no secrets: these are made by the first apply and stay in
# the state directory beside this file, with the ring builders. Keep a copy of that directory.

[cluster]
part_power = 10            # 2^10 partitions: about 100 for each disk that the cluster will ever have
min_part_hours = 1         # hours between two moves of a partition
# overload = 0.1           # how far a disk may exceed its weight so that replicas stay apart
# ssh = ["ssh", "-l", "root"]   # the command before the name of a host; add "-o" options as you like
# sudo = false             # run "sudo -n" on hosts
# state = "cluster.state"  # the state directory, relative to this file
# user = "swift"           # user of the servers; its group may read the configuration
# sync_method = "ssync"    # rsync: replicate objects through rsyncd, which is then configured too

[proxy]
port = 8080
# workers = "auto"
# pipeline = ["catch_errors", "...", "proxy-server"]

[proxy.users]              # account:user = groups, for tempauth; the keys are made by the first apply
"test:tester" = [".admin"]

[storage]
# devices = "/srv/node"
# mount_check = true
# workers = "auto"
# replicas = 3             # of accounts and containers
# class = "ssd"            # only disks of this class have them
# object_port = 6200       # also container_port, account_port

[memcached]                # each proxy host runs one, unless you name your own
# servers = ["10.0.0.8:11211"]
# memory_mb = 64

# More options of any configuration file: [conf."FILE"."SECTION"].
# [conf."object-server.conf"."object-replicator"]
# concurrency = 4

[[policy]]
name = "gold"
index = 0
default = true
replicas = 3

# [[policy]]
# name = "archive"
# index = 1
# data = 4                 # fragments of erasure coding
# parity = 2
# class = "hdd"            # only disks of this class; without it, disks that have none

# Disks are formatted and mounted at /srv/node/DEVICE before they are listed here.
[[host]]
name = "one"
address = "10.0.0.1"
# replication_address = "10.1.0.1"   # when replication has a network of its own
# proxy_address = "192.0.2.1"        # where clients reach this proxy; else address
# target = "one.example.org"         # what ssh is told; else address
# local = false                      # true: this machine, without ssh
region = 1
zone = 1
roles = ["proxy", "storage"]
disks = [
    { device = "sdb", weight = 100 },
    { device = "sdc", weight = 100 },
    # { device = "sdd", weights = { object = 100, object-1 = 50 }, zone = 4 },   # in these rings only
]

[[host]]
name = "two"
address = "10.0.0.2"
region = 1
zone = 2
roles = ["proxy", "storage"]
disks = [
    { device = "sdb", weight = 100 },
    { device = "sdc", weight = 100 },
]

[[host]]
name = "three"
address = "10.0.0.3"
region = 1
zone = 3
roles = ["proxy", "storage"]
disks = [
    { device = "sdb", weight = 100 },
    { device = "sdc", weight = 100 },
]
"""
