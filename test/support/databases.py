"""Looking into the databases of daemons that are at work."""

import sqlite3


def rows_of(path, select):
    """The rows of a query; none where the file went, or was put in place of another, while we looked."""
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(select).fetchall()
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return []
