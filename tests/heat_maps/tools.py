"""The two tools of the agents."""

import os

import httpx

BASE = os.environ["TOOLS_URL"]


def get_lat_lng(location: str) -> dict:
    """Get the latitude and longitude of a location."""
    response = httpx.get(f"{BASE}/place", params={"name": location})
    response.raise_for_status()
    return response.json()


def get_weather(lat: float, lng: float) -> dict:
    """Get the current weather at a place."""
    response = httpx.get(f"{BASE}/weather", params={"lat": lat, "lng": lng})
    response.raise_for_status()
    return response.json()
