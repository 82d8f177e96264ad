"""Texts of /proc become values."""

from swift.middleware.recon import machine


def test_memory_keeps_what_the_kernel_prints():
    assert machine.parse_meminfo("MemTotal:    10 kB\nHugePages_Total:       0\n") == {
        "MemTotal": "10 kB",
        "HugePages_Total": "0",
    }


def test_load_is_five_numbers():
    assert machine.parse_loadavg("0.10 0.20 0.30 2/130 4711\n") == {
        "1m": 0.1,
        "5m": 0.2,
        "15m": 0.3,
        "tasks": "2/130",
        "processes": 4711,
    }


def test_mounts_are_pairs():
    assert machine.parse_mounts("/dev/vda / ext4 rw 0 0\nproc /proc proc rw 0 0\n") == [
        {"device": "/dev/vda", "path": "/"},
        {"device": "proc", "path": "/proc"},
    ]


def test_sockets_count_pages_as_bytes_and_may_lack_ipv6():
    text = "sockets: used 238\nTCP: inuse 225 orphan 1 tw 846 alloc 225 mem 3\nUDP: inuse 1 mem 0\n"
    assert machine.parse_sockstat(text, "TCP6: inuse 4\n", 4096) == {
        "tcp_in_use": 225,
        "orphan": 1,
        "time_wait": 846,
        "tcp_mem_allocated_bytes": 12288,
        "tcp6_in_use": 4,
    }
    assert machine.parse_sockstat("", "", 4096)["tcp6_in_use"] == 0
