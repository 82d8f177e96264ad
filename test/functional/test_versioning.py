"""Versions of an object with concurrent writers."""

import threading

WRITERS, EACH = 6, 8


def test_every_upload_creates_a_version_and_the_newest_is_current(cluster):
    cluster.request("PUT", "races", {"X-Versions-Enabled": "true"})
    stored, failed = {}, []

    def write(writer):
        for number in range(EACH):
            body = f"{writer} {number}".encode()
            response = cluster.request("PUT", "races/o", body=body)
            if response.status == 201:
                stored[response.headers["x-object-version-id"]] = body
            else:
                failed.append(response)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(response.status == 503 for response in failed), failed
    assert len(stored) + len(failed) == WRITERS * EACH
    newest = max(stored)
    response = cluster.request("GET", "races/o")
    assert (response.headers["x-object-version-id"], response.body) == (newest, stored[newest])
    for version, body in stored.items():
        assert cluster.request("GET", f"races/o?version-id={version}").body == body
    rows = cluster.request("GET", "races?versions").json()
    assert {row["version_id"] for row in rows} >= set(stored)
    assert [row["version_id"] for row in rows if row["is_latest"]] == [newest]


def test_pages_of_versions_list_each_version_once(cluster):
    cluster.request("PUT", "version-pages", {"X-Versions-Enabled": "true"})
    for name in ("a", "a/b", "b"):
        for body in (b"1", b"2", b"3"):
            cluster.request("PUT", f"version-pages/{name}", body=body)
    cluster.request("DELETE", "version-pages/a")
    every = cluster.request("GET", "version-pages?versions").json()
    assert len(every) == 10
    for limit in (1, 2, 3, 7):
        seen, query = [], ""
        while rows := cluster.request("GET", f"version-pages?versions&limit={limit}{query}").json():
            seen += rows
            query = f"&marker={rows[-1]['name']}&version_marker={rows[-1]['version_id']}"
        assert [(row["name"], row["version_id"]) for row in seen] == [
            (row["name"], row["version_id"]) for row in every
        ]
