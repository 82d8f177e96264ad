"""Transaction ids."""

import re

from swift.base.txid import new_transaction_id


def test_an_id_has_its_random_part_and_its_moment():
    assert re.fullmatch(r"tx[0-9a-f]{21}-0000000064", new_transaction_id(now_s=100.9))
    assert new_transaction_id() != new_transaction_id()


def test_the_suffix_of_a_cluster_and_the_text_of_a_client_are_quoted_and_cut():
    text = new_transaction_id("-a b", "x\n" + "y" * 40, now_s=0)
    assert text.endswith("-0000000000-a%20b-x%0A" + "y" * 30)
