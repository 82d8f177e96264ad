"""OpenID Connect: tokens of workloads, and log-in of people through identity providers."""
