//! The generated code for `wit/`, and nothing else.
//!
//! One world holds every kind, so that one linker and one set of types serve all
//! plugins; a component exports one of the kinds, found by the `GuestIndices` of its
//! WIT interface. It must not know how a call is metered, what a service does or what a
//! verdict means: that is `runtime`.

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package portway:every-kind;

        world every-kind {
            include portway:plugin/services@0.1.0;
            export portway:plugin/transform@0.1.0;
            export portway:plugin/stream-source@0.1.0;
            export portway:plugin/poll-source@0.1.0;
            export portway:plugin/http-source@0.1.0;
            export portway:plugin/sender@0.1.0;
            export portway:plugin/http-sender@0.1.0;
        }
    ",
    world: "every-kind",
    exports: { default: async },
});
