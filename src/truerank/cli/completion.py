"""`truerank completion SHELL`: a script that completes commands, options, rankers and files.

bash and zsh: eval "$(truerank completion bash)" in ~/.bashrc (zsh: completion zsh in ~/.zshrc); fish: truerank
completion fish > ~/.config/fish/completions/truerank.fish
"""

from __future__ import annotations

from truerank.cli.parser import Options, argument

SHELLS = ("bash", "zsh", "fish")


class Arguments(Options):
    shell: str = argument("shell that completes", choices=SHELLS)


def run(args: Arguments) -> int:
    """Print the script."""
    print(script(args.shell), end="")
    return 0


def script(shell: str) -> str:
    """Return the completion script of a shell in `SHELLS`."""
    from truerank.measures.conventions import CONVENTIONS
    from truerank.models.registry import RANKERS

    options = _options()
    if shell == "fish":
        lines = []
        for command, (words, summary) in options.items():
            described = summary.replace("'", "")
            first, _, second = command.partition(" ")
            if second:  # after its first word, unless there is a second one
                after = f"__fish_seen_subcommand_from {first}; and not __fish_seen_subcommand_from {second}"
                lines.append(f"complete -c truerank -n __fish_use_subcommand -f -a {first}")
                lines.append(f"complete -c truerank -n '{after}' -f -a {second} -d '{described}'  # {command}")
            else:
                lines.append(f"complete -c truerank -n __fish_use_subcommand -f -a {command} -d '{described}'")
            for word in words:
                known = {"--ranker": RANKERS, "--convention": CONVENTIONS}.get(word)
                values = f" -x -a '{' '.join(known)}'" if known else ""
                after = "; and ".join(f"__fish_seen_subcommand_from {part}" for part in command.split())
                lines.append(f"complete -c truerank -n '{after}' -l {word.removeprefix('--')}{values}")
        return "\n".join(lines) + "\n"
    firsts = list(dict.fromkeys(command.partition(" ")[0] for command in options))
    seconds = {first: [c.partition(" ")[2] for c in options if c.startswith(f"{first} ")] for first in firsts}
    cases = "\n".join(
        [f'        "{command}{"" if " " in command else " "}"*) words="{" ".join(words)}" ;;'
         for command, (words, _) in options.items()]
        + [f'        "{first} "*) COMPREPLY=( $(compgen -W "{" ".join(own)}" -- "$current") ); return ;;'
           for first, own in seconds.items() if own]
    )  # fmt: skip
    start = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return f"""{start}_truerank() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=( $(compgen -W "{" ".join(firsts)}" -- "$current") )
        return
    fi
    case "$before" in
        --ranker) COMPREPLY=( $(compgen -W "{" ".join(RANKERS)}" -- "$current") ); return ;;
        --convention) COMPREPLY=( $(compgen -W "{" ".join(CONVENTIONS)}" -- "$current") ); return ;;
    esac
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{cases}
    esac
    case "$current" in
        -*) COMPREPLY=( $(compgen -W "$words" -- "$current") ) ;;
        *) COMPREPLY=() ;; # the shell's own completion of files
    esac
}}
complete -o bashdefault -o default -F _truerank truerank
"""


def _options() -> dict[str, tuple[list[str], str]]:
    """Return the long options and the summary of each command."""
    from truerank.cli import COMMANDS, command_parser

    found = {}
    for command, (_, summary) in COMMANDS.items():
        _, parser = command_parser(command)
        words = [word for action in parser._actions for word in action.option_strings if word.startswith("--")]
        found[command] = (words, summary)
    return found
