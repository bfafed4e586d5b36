"""An agent of pydantic-ai, as its documentation builds one."""

from pydantic_ai import Agent

from tools import get_lat_lng, get_weather

assistant = Agent(
    "openai:gpt-5",
    instructions="You are a helpful assistant. Use your tools.",
    tools=[get_lat_lng, get_weather],
)


async def agent(prompt):
    result = await assistant.run(prompt)
    return result.output
