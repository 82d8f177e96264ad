"""Bucket policies: documents in AWS's language as values, and what they decide. Pure.

policy = parse_policy(text, bucket)         raises BadPolicy
decide(policy, Ask(caller, action, resource, facts)) -> Verdict
"""
