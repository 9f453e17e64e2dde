//! The program explains itself.

use std::process::Command;

#[test]
fn each_command_has_help() {
    for command in ["", "crash", "alternate", "compare", "instructions"] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pintle-bench"));
        let command = Some(command).filter(|command| !command.is_empty());
        let output = program.args(command).arg("--help").output().expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("Usage: pintle-bench"), "{text}");
    }
}
