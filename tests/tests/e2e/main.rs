//! The real binary between real clients and a simulated upstream.

#![expect(
    clippy::unwrap_used,
    reason = "a panic here is a failed test, which says why"
)]

mod access;
mod accounting;
mod api;
mod approval;
mod breaks;
mod canaries;
mod certificates;
mod ci;
mod clients;
mod commands;
mod comparisons;
mod connect;
mod context;
mod conversations;
mod crews;
mod dashboard;
mod dashboard_profiles;
mod dashboard_runs;
mod desk;
mod dice;
mod docs_page;
mod dry_run;
mod every_mode;
mod explore;
mod explore_calls;
mod first_event;
mod fleet;
mod framing;
mod heat_maps;
mod http2;
mod imports;
mod judge_agents;
mod judging;
mod kept_conversations;
mod langchain;
mod leaks;
mod lifecycle;
mod llm_faults;
mod load;
mod long;
mod matrix;
mod mcp;
mod model_sockets;
mod mutations;
mod network_faults;
mod readers;
mod recordings;
mod replays;
mod reports;
mod routes;
mod runs;
mod schemathesis;
mod scopes;
mod spread;
mod store;
mod streams;
mod suite_runs;
mod terminal;
mod tool_faults;
mod transparency;
mod websockets;
