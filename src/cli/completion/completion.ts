/**
 * `atelier completion bash|zsh|fish`: a script for the shell. The script knows nothing itself: for every word it asks
 * `atelier completion words`, which reads the commands as they are.
 */
import type { Command } from 'commander'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import { askEndpoints, type EndpointWire, pathOf } from '../endpoints/endpoint-api.ts'
import { RunClient } from '../server/client.ts'
import { toFields } from '../server/job-answers.ts'
import { readServer } from '../server/server-flags.ts'
import { EXIT, type Finish, type Terminal } from '../terminal.ts'
import { splitLine, toInserted } from './bash-line.ts'
import {
  type Completion,
  complete,
  type InputWord,
  readTyped,
  type ServiceWords,
  type Typed,
  type Word,
} from './complete-words.ts'

// As long as somebody waits for a key to answer.
const PATIENCE_MS = 1500
const SHOWN_IDS = 50
const NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

function createServiceWords(values: Typed['values'], terminal: Terminal): ServiceWords {
  const signal = AbortSignal.timeout(PATIENCE_MS)
  function connect(): RunClient {
    const server = readServer(values, terminal)
    if (server === null) throw new Error('no server')
    return new RunClient(server)
  }
  async function ask<Answer>(path: string): Promise<Answer> {
    const client = connect()
    return askEndpoints<Answer>({ call: (link, init) => client.call(link, { ...init, signal }) }, path)
  }
  const listOf = (list: unknown) => (Array.isArray(list) ? list.map(toFields) : [])
  async function readJobs(): Promise<readonly Word[]> {
    const { jobs } = toFields(await connect().read(`/jobs?limit=${SHOWN_IDS}`, signal))
    return listOf(jobs).map((job) => ({ text: String(job['id']), about: `${job['status']}, ${job['created_at']}` }))
  }
  async function readAssets(): Promise<readonly Word[]> {
    const client = connect()
    const { assets } = toFields(await client.read(`${client.baseUrl}/console/v1/assets?limit=${SHOWN_IDS}`, signal))
    return listOf(assets).map((asset) => ({ text: String(asset['asset_id']), about: String(asset['name']) }))
  }
  const orNothing = <Found>(asked: Promise<readonly Found[]>): Promise<readonly Found[]> => asked.catch(() => [])

  async function readEndpoints(beginning: string): Promise<readonly Word[]> {
    // They come in the order of their names, and one of this very name is before those that go on.
    const query = new URLSearchParams({ limit: '100', ...(beginning !== '' && { after: beginning }) })
    const [page, exact] = await Promise.all([
      ask<{ readonly endpoints: readonly EndpointWire[] }>(`?${query}`),
      NAME.test(beginning) ? ask<EndpointWire>(pathOf(beginning)).catch(() => null) : null,
    ])
    return [...(exact === null ? [] : [exact]), ...page.endpoints].map(({ name, title }) => ({
      text: name,
      about: title,
    }))
  }

  async function readVersions(name: string): Promise<readonly Word[]> {
    const { aliases, latest_version: latest, current_version: current } = await ask<EndpointWire>(pathOf(name))
    const named = Object.entries(aliases).map(([text, version]) => ({ text, about: `version ${version}` }))
    const numbers = [...new Set([current, latest])].map((version) => ({ text: String(version) }))
    return [...named, { text: 'latest', about: `version ${latest}` }, ...numbers]
  }

  async function readInputs(reference: string): Promise<readonly InputWord[]> {
    const [name, version] = reference.split('@')
    const query = version === undefined ? '' : `?${new URLSearchParams({ version })}`
    const { properties } = await ask<JsonObject>(`${pathOf(name, 'schema')}${query}`)
    return Object.entries(isJsonObject(properties) ? properties : {}).flatMap(([text, schema]) =>
      isJsonObject(schema) ? [toInputWord(text, schema)] : [],
    )
  }

  return {
    endpoints: (beginning) => orNothing(readEndpoints(beginning)),
    versions: (name) => orNothing(readVersions(name)),
    jobs: () => orNothing(readJobs()),
    assets: () => orNothing(readAssets()),
    inputs: (reference) => orNothing(readInputs(reference)),
  }
}

function toInputWord(text: string, schema: JsonObject): InputWord {
  const { title, description, type, enum: closed, examples, contentMediaType } = schema
  const about = [description, title].find((each) => typeof each === 'string' && each !== '')
  // Of a choice that is open the schema has examples; of anything else the one example is what its author had.
  const choices = closed ?? (Array.isArray(examples) && examples.length > 1 ? examples : [])
  return {
    text,
    ...(typeof about === 'string' && { about }),
    choices: Array.isArray(choices) ? choices.map((choice: JsonValue) => ({ text: String(choice) })) : [],
    isSwitch: type === 'boolean',
    isFile: contentMediaType !== undefined,
  }
}

/** The program with the commands that such words may mean. */
type LoadProgram = (words: readonly string[]) => Promise<Command>

const SCRIPTS: Readonly<Record<'bash' | 'zsh' | 'fish', string>> = {
  bash: `# atelier: eval "$(atelier completion bash)", for example in ~/.bashrc
_atelier() {
  local kind= word
  COMPREPLY=()
  while IFS= read -r word; do
    if [ -z "$kind" ]; then kind=$word; else COMPREPLY+=("$word"); fi
  done < <(atelier completion words --line "\${COMP_LINE:0:COMP_POINT}" --breaks "$COMP_WORDBREAKS" 2>/dev/null)
  if [ "$kind" = files ]; then
    compopt -o default -o filenames 2>/dev/null
    if [ "\${#COMPREPLY[@]}" -gt 0 ]; then
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")
    fi
  elif [ "\${#COMPREPLY[@]}" -eq 1 ] && [[ "\${COMPREPLY[0]}" == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
}
complete -F _atelier atelier
`,
  zsh: `#compdef atelier
# atelier: eval "$(atelier completion zsh)" behind compinit, for example in ~/.zshrc
_atelier() {
  local kind= line word
  local -a found about
  while IFS= read -r line; do
    if [[ -z $kind ]]; then kind=$line; continue; fi
    word=\${line%%$'\\t'*}
    found+=("$word")
    if [[ $line == *$'\\t'* ]]; then about+=("$word  -- \${line#*$'\\t'}"); else about+=("$word"); fi
  done < <(atelier completion words -- "\${(Q)words[@]:1:$((CURRENT - 1))}" 2>/dev/null)
  if (( \${#found} )); then
    if (( \${#found} == 1 )) && [[ $found[1] == *= ]]; then compadd -S '' -a found; else compadd -l -d about -a found; fi
  fi
  [[ $kind == files ]] && _files
}
compdef _atelier atelier
`,
  fish: `# atelier: atelier completion fish | source, for example in ~/.config/fish/config.fish
function __atelier_words
  set -l before (commandline -opc)
  set -l found (atelier completion words -- $before[2..-1] (commandline -ct) 2>/dev/null)
  test (count $found) -gt 1; and printf '%s\\n' $found[2..-1]
  test "$found[1]" = files; and __fish_complete_path (commandline -ct)
end
complete -c atelier -f -a '(__atelier_words)'
`,
}

export function addCompletion(program: Command, terminal: Terminal, finish: Finish, load: LoadProgram): void {
  const completion = program
    .command('completion')
    .description('print a script that completes commands, flags and inputs of endpoints in a shell')
  for (const [shell, script] of Object.entries(SCRIPTS))
    completion
      .command(shell)
      .description(`for ${shell}; the first line says where it belongs`)
      .action(() => void terminal.stdout.write(script))
  completion
    .command('words [word...]', { hidden: true })
    .option('--line <text>', 'the line of bash up to the cursor, in place of words')
    .option('--breaks <text>', 'what begins a word of bash in the middle of one')
    .passThroughOptions()
    .action(async (words: string[], { line, breaks = '' }: { line?: string; breaks?: string }) => {
      terminal.stdout.write(await tellWords(line === undefined ? words : { line, breaks }, terminal, load))
      finish(EXIT.ok)
    })
}

type Asked = readonly string[] | { readonly line: string; readonly breaks: string }

async function tellWords(asked: Asked, terminal: Terminal, load: LoadProgram): Promise<string> {
  if (!('line' in asked))
    return toLines(await find(asked, terminal, load), ({ text, about = '' }) =>
      about === '' ? text : `${text}\t${about}`,
    )
  const typed = splitLine(asked.line)
  const completion = await find(typed.words.slice(1), terminal, load)
  return toLines(completion, ({ text }) => toInserted(text, typed, asked.breaks))
}

async function find(words: readonly string[], terminal: Terminal, load: LoadProgram): Promise<Completion> {
  const typed = readTyped(await load(words), words.slice(0, -1))
  return complete(typed, words.at(-1) ?? '', createServiceWords(typed.values, terminal))
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what would end a line, or control a terminal.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f]/
const MAX_ABOUT = 80

/** First whether files count, then a word on each line. */
function toLines({ words, takesFiles }: Completion, toText: (word: Word) => string | null): string {
  const lines = words
    .filter(({ text }) => text !== '' && !CONTROLS.test(text))
    .flatMap(({ text, about = '' }) => toText({ text, about: about.replaceAll(/\s+/g, ' ').slice(0, MAX_ABOUT) }) ?? [])
    .filter((line) => !CONTROLS.test(line.replace('\t', '')))
  return [takesFiles ? 'files' : 'words', ...new Set(lines)].map((line) => `${line}\n`).join('')
}
