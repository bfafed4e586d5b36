//! What the linker is asked for beyond the ordinary, where it is known to understand it.
//!
//! - Compact relocations (`DT_RELR`) where the C library reads them, from glibc 2.36 on: a megabyte
//!   less of a binary that is read at every start.
//! - In release builds the functions of a start side by side (`link/start.ld`): what is resident of
//!   an idle daemon falls by a third. Read `docs/decisions/link-order.md`.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=link/start.ld");
    if !is("CARGO_CFG_TARGET_OS", "linux") {
        return;
    }
    let at_home = env::var("HOST").ok() == env::var("TARGET").ok();
    let on_glibc = is("CARGO_CFG_TARGET_ENV", "gnu");
    if at_home && on_glibc && glibc().is_some_and(|version| version >= (2, 36)) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if is("PROFILE", "release") && reads_scripts() {
        let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{folder}/link/start.ld");
    }
}

fn is(name: &str, wanted: &str) -> bool {
    env::var(name).is_ok_and(|value| value == wanted)
}

/// Whether the linker adds a script to its own layout: LLD and GNU ld do, mold and wild do not.
fn reads_scripts() -> bool {
    let said =
        ["CARGO_ENCODED_RUSTFLAGS", "RUSTC_LINKER"].map(|name| env::var(name).unwrap_or_default());
    !said
        .iter()
        .any(|said| said.contains("mold") || said.contains("wild"))
}

/// The version of this machine's glibc.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
