"""tf_wheel: the wheel as an output of bazel, in the directory wheel_house, as TensorFlow's rule of that name from 2.17 on."""

def _tf_wheel(ctx):
    house = ctx.actions.declare_directory("wheel_house")
    ctx.actions.run(
        outputs = [house],
        inputs = ctx.files.parts,
        executable = ctx.file.program,
        arguments = [house.path] + [part.path for part in ctx.files.parts],
        tools = [ctx.file.program],
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([house]))]

tf_wheel = rule(
    implementation = _tf_wheel,
    attrs = {
        "parts": attr.label(),
        "program": attr.label(allow_single_file = True),
    },
)
