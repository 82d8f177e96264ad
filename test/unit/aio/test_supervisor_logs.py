"""Log files of a cluster on one machine are kept short."""

from swift.aio.supervisor import rotate


def test_a_long_log_begins_anew_while_its_writer_goes_on(tmp_path):
    short, long = tmp_path / "short.log", tmp_path / "long.log"
    short.write_text("ok\n")
    (tmp_path / "long.log.1").write_text("older\n")
    with open(long, "a") as writer:
        writer.write("x" * 200)
        writer.flush()
        assert rotate(tmp_path, 100) == ["long.log"]
        writer.write("next\n")
    assert long.read_text() == "next\n"
    assert (tmp_path / "long.log.1").read_text() == "x" * 200
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.log", "long.log.1", "short.log"]
    assert rotate(tmp_path, 100) == []
