"""The container sharder: large containers are split into shards, small shards are put together."""
