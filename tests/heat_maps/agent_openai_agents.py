"""An agent of the OpenAI Agents SDK, as its quickstart builds one."""

from agents import Agent, Runner, function_tool, set_tracing_disabled

from tools import get_lat_lng, get_weather

# Traces go to OpenAI.
set_tracing_disabled(True)

assistant = Agent(
    name="Assistant",
    instructions="You are a helpful assistant. Use your tools.",
    model="gpt-5",
    tools=[function_tool(get_lat_lng), function_tool(get_weather)],
)


async def agent(prompt):
    result = await Runner.run(assistant, prompt)
    return result.final_output
