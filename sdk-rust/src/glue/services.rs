//! Generated: the host's services and the types that all kinds share.

wit_bindgen::generate!({
    path: "../wit",
    inline: "
        package portway:sdk;
        world shared {
            include portway:plugin/services@0.1.0;
            import portway:plugin/types@0.1.0;
        }
    ",
    world: "portway:sdk/shared",
    generate_all,
});
