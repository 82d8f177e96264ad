"""Files by kernel handle."""

import errno
import os

import pytest

from swift.platform.disk import handle_of, open_handle


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    try:
        handle_of(str(path))
    except OSError as error:
        pytest.skip(f"this filesystem has no handles: {error}")
    return path


@pytest.fixture
def opened(tmp_path, file):
    """Opens handles on the filesystem of the file."""
    root = os.open(tmp_path, os.O_RDONLY)

    def open_it(handle):
        try:
            return open_handle(root, handle, os.O_RDONLY)
        except PermissionError:
            pytest.skip("opening by handle needs CAP_DAC_READ_SEARCH")

    yield open_it
    os.close(root)


def test_a_path_and_a_descriptor_have_the_same_handle(file):
    with open(file, "rb") as stream:
        assert handle_of(stream.fileno()) == handle_of(str(file))


def test_a_handle_opens_the_file_wherever_it_was_moved(file, opened):
    handle = handle_of(str(file))
    file.rename(file.with_name("moved"))
    fd = opened(handle)
    assert os.read(fd, 100) == b"content"
    os.close(fd)


def test_a_removed_file_is_gone_though_another_takes_its_place(file, opened):
    handle = handle_of(str(file))
    os.close(opened(handle))
    file.unlink()
    file.write_bytes(b"another")
    with pytest.raises(OSError) as caught:
        os.close(opened(handle))
    assert caught.value.errno == errno.ESTALE


def test_what_is_not_there_has_no_handle(tmp_path):
    with pytest.raises(FileNotFoundError):
        handle_of(str(tmp_path / "none"))
