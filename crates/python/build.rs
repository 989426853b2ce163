//! What maturin would say to the linker, for a plain `cargo build`.

fn main() {
    // Elsewhere symbols of a shared library may stay undefined; macOS wants to be told.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "macos") {
        println!("cargo:rustc-cdylib-link-arg=-undefined");
        println!("cargo:rustc-cdylib-link-arg=dynamic_lookup");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
