/**
 * A page as the one shell script that a reader would make of it by pasting every block in order. It stops at the first command
 * that fails, inside pipes too. Two things differ from a terminal:
 *
 * - A service that runs in the foreground is put aside, as into a second terminal, and waited for; the next one takes its place, as
 *   after Ctrl-C.
 * - `command  # => text` states what the command prints, and fails when it prints anything else.
 */
import type { Block } from './blocks.ts'

const FOREGROUND = /^(npm start|npx atelier serve)(?=$|\s)(?!.*&\s*(#.*)?$)/
/** In a terminal none of these gives the prompt back. */
const HOLDS_TERMINAL = /^(npm start|npx (atelier|\S+\.tgz) (serve|work|mcp))(?=$|\s)(?!.*(&|--help)\s*(#.*)?$)/
const IN_BACKGROUND = /^npx atelier start(?=$|\s)/
const STATED = /^(\S.*\S)\s+# => (.*)$/
const PUT_ASIDE = 'put_aside_service'
const END_OF_TEXT = 'END_OF_THE_BLOCK'

const PREAMBLE = `set -euo pipefail
trap 'echo "$block: exit $?: $BASH_COMMAND" >&2' ERR
block=start

${PUT_ASIDE}() {
  end_service
  "$@" >>"$SERVICE_LOG" 2>&1 &
  service=$!
  for _ in $(seq 300); do
    if curl -fso /dev/null "$SERVICE_URL/readyz"; then return 0; fi
    kill -0 "$service" 2>/dev/null || break
    sleep 0.1
  done
  echo "the service did not get ready: $*" >&2
  cat "$SERVICE_LOG" >&2
  return 1
}

end_service() {
  if [ -n "\${service:-}" ]; then
    kill -TERM "$service"
    wait "$service" || true
    service=
  fi
}

must_print() {
  local stated=$1 printed=$2
  printf '%s\\n' "$printed"
  if [ "$printed" != "$stated" ]; then
    echo "$block: states \\"$stated\\", and prints \\"$printed\\"" >&2
    return 1
  fi
}
`

export interface ScriptOptions {
  /** Every block that starts no service is pasted twice: what a reader may do again must work again. */
  readonly isRepeated?: boolean
}

export function toScript(page: string, blocks: readonly Block[], { isRepeated = false }: ScriptOptions = {}): string {
  const parts = blocks.flatMap((block) => {
    const commands = toCommands(block)
    if (commands === null) return []
    const part = `block=${quote(`${page}:${block.line}`)}\n${commands}`
    return isRepeated && !commands.includes(PUT_ASIDE) ? [part, part] : [part]
  })
  return [PREAMBLE, ...parts, 'end_service', ''].join('\n')
}

function toCommands({ use, text, line }: Block): string | null {
  switch (use.kind) {
    case 'shell':
      return text.split('\n').map(toCommand).join('\n')
    case 'sample':
      return `${save(`sample-${line}.ts`, text)}\nnode sample-${line}.ts`
    case 'python':
      return `${save(`sample-${line}.py`, text)}\npython3 sample-${line}.py`
    case 'file':
      return `mkdir -p "$(dirname ${quote(use.path)})"\n${save(use.path, text)}`
    default:
      return null
  }
}

/** The commands of a pasted block that would never be reached, because the one before them holds the terminal. */
export function linesNeverReached({ language, text }: Block): string[] {
  if (language !== 'sh') return []
  const commands = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'))
  const holding = commands.findIndex((line) => HOLDS_TERMINAL.test(line))
  return holding === -1 ? [] : commands.slice(holding + 1)
}

function toCommand(line: string): string {
  if (FOREGROUND.test(line)) return `${PUT_ASIDE} ${line}`
  if (IN_BACKGROUND.test(line)) return `end_service\n${line}`
  const stated = STATED.exec(line)
  return stated === null ? line : `printed=$(${stated[1]})\nmust_print ${quote(stated[2])} "$printed"`
}

function save(file: string, text: string): string {
  return `cat > ${quote(file)} <<'${END_OF_TEXT}'\n${text}\n${END_OF_TEXT}`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
