/** The engines: the built-in one, ComfyUI servers, and ComfyUI's own editor in front of the service. */
import { readBlock, readChoice, readList, readPath, readWordOr } from '../readers/read-choice.ts'
import { readPublicUrl } from '../readers/read-network.ts'
import { DAY, MIB, readBytes, readCount, readDurationMs, readRecycling, SECOND, TIB } from '../readers/read-quantity.ts'
import type { SettingTable } from './setting.ts'

/** Commands hold commas and blanks, but no line breaks. */
const COMMAND_SEPARATOR = '\n'

const MAX_COMMANDS = 64

/** A base address without a trailing slash. Credentials are refused: an address is shown in logs and answers. */
function readEngineUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (url === null || !isHttp || url.search !== '' || url.hash !== '') {
    throw new Error(
      `has the item ${JSON.stringify(text)}, which is no http(s) address; give for example http://gpu1:8188`,
    )
  }
  if (url.username !== '' || url.password !== '') {
    throw new Error('has an item with a user name or password; give the address alone, and protect it by the network')
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

/** Commands that start a server and can be told its port. */
function readCommands(text: string): readonly string[] {
  const commands = text
    .split(COMMAND_SEPARATOR)
    .map((line) => line.trim())
    .filter((line) => line !== '')
  if (commands.length > MAX_COMMANDS) {
    throw new Error(`has ${commands.length} commands; at most ${MAX_COMMANDS} are allowed`)
  }
  if (commands.some((command) => !command.includes('{port}'))) {
    throw new Error('has a command without {port}; give for example python main.py --port {port}')
  }
  return commands
}

export const ENGINE_SETTINGS = {
  engineThreads: {
    argument: '<count>',
    fallback: 'auto',
    read: readWordOr('auto', 'auto', readCount({ min: 1, max: 256 })),
    help: 'Threads of the built-in engine. `auto`: one less than the processor cores, so that requests stay quick while it computes. A large picture also uses idle cores.',
    who: 'Operators who share the machine with other programs.',
  },
  engineMemory: {
    argument: '<size>',
    fallback: 'auto',
    read: readWordOr('auto', 'auto', readBytes({ min: 64 * MIB, max: 64 * TIB })),
    help: 'Memory for the built-in engine. `auto`: half of the machine, at most 8 GiB.',
    who: 'Operators with small containers, or with very large pictures.',
  },
  nodes: {
    argument: '<folder>',
    fallback: '',
    read: readList(readPath),
    help: 'Folders with nodes of your own, comma separated; see docs/custom-nodes.md. They are trusted code. Read at the start only.',
    who: 'Developers of nodes of their own.',
  },
  nodeTimeout: {
    argument: '<duration>',
    fallback: '10m',
    read: readDurationMs({ min: 100, max: 30 * DAY }),
    help: 'The longest time that one call of a node may take, built-in or your own; then its job fails and its thread is ended.',
    who: 'Developers whose nodes rightly take longer than ten minutes.',
  },
} as const satisfies SettingTable

export const FLEET_SETTINGS = {
  comfyui: {
    argument: '<url>',
    fallback: '',
    read: readList(readEngineUrl),
    help: 'Addresses of ComfyUI servers that run the jobs, comma separated, such as `http://gpu1:8188`. See docs/fleet.md.',
    who: 'Whoever already runs ComfyUI, here or on other machines.',
  },
  comfyuiLaunch: {
    argument: '<command>',
    fallback: '',
    separator: COMMAND_SEPARATOR,
    read: readCommands,
    help: 'Commands that start ComfyUI servers of our own, one per line, such as `python main.py --port {port}`. They are supervised: started, watched, restarted, ended with the service. `{port}` becomes a free port. No shell is involved.',
    who: 'Whoever wants ComfyUI started and watched by the service.',
  },
  comfyuiCount: {
    argument: '<count>',
    fallback: '1',
    read: readCount({ min: 1, max: 64 }),
    help: 'How many servers each command of `comfyuiLaunch` starts. `{index}` in the command counts them from 0.',
    who: 'Whoever has the service start ComfyUI on a machine with several GPUs.',
  },
  comfyuiConcurrency: {
    argument: '<count>',
    fallback: '1',
    read: readCount({ min: 1, max: 64 }),
    help: 'Jobs that one ComfyUI server gets at a time. Raise it only for servers that really run several at once.',
    who: 'Operators of ComfyUI servers, or of what acts as one, that run several prompts at once.',
  },
  embedded: {
    argument: '<when>',
    fallback: 'auto',
    read: readChoice(['auto', 'on', 'off']),
    help: 'Whether the built-in engine takes jobs. `auto`: only when no ComfyUI server is named.',
    who: 'Users of ComfyUI who also want the built-in engine: `on`; operators who want none in this process: `off`.',
  },
  joins: {
    argument: '<when>',
    fallback: 'auto',
    read: readChoice(['auto', 'on', 'off']),
    help: 'Whether workers on other machines may join with a worker key (`atelier work --join`). `auto`: with Postgres always, otherwise if there is a worker key at the start. See docs/workers.md.',
    who: 'Operators on SQLite who make their first worker key later: `on`; operators who want no strangers to try: `off`.',
  },
  engineWait: {
    argument: '<duration>',
    fallback: '10s',
    read: readDurationMs({ min: 0, max: 3600 * SECOND }),
    help: 'How long a start waits for ComfyUI servers to report what they can run before the service listens. Servers that answer later join then.',
    who: 'Operators whose ComfyUI servers load for long, and whose callers must not see a service without them.',
  },
  engineStallAfter: {
    argument: '<duration>',
    fallback: '30m',
    read: readWordOr('none', null, readDurationMs({ min: SECOND, max: 30 * DAY })),
    help: 'A node that reports nothing for this long while the server says that it runs is considered hung, and its job fails. Twice this time for a server without a socket.',
    who: 'Users of nodes that work for longer than half an hour without a sign of life.',
  },
  weightPickles: {
    argument: '<when>',
    fallback: 'off',
    read: readChoice(['on', 'off']),
    help: 'Whether an operator may upload weights of kinds that can run code when they are loaded, or that cannot be checked (`.ckpt`, `.pt`, `.pth`, `.bin`, `.pkl`, `.onnx`). See docs/weights.md.',
    who: 'Operators who trust the origin of old weights.',
  },
  builder: {
    argument: '<file>',
    fallback: 'none',
    isBlock: true,
    isSecret: true,
    read: readWordOr('none', null, readWordOr('on', { kind: 'on' }, readBlock)),
    help: 'Whether this process makes the environments of releases: `on`, or a JSON file, or, in the config file, an object, that says from what and where. Whoever may push a build runs code on this machine. `none`: it makes none. See docs/builders.md.',
    who: 'Operators who let accounts, or themselves, cut releases.',
  },
  recycleAfter: {
    argument: '<limits>',
    fallback: 'none',
    read: readWordOr('none', {}, readRecycling),
    help: 'When a launched server is replaced by a fresh one, between jobs: after a number of jobs (`500`), once its process uses more memory than a size (`24GiB`), once it has run for a duration (`1d`); several, comma separated. `none`: only when it fails.',
    who: 'Operators whose custom nodes leak memory.',
  },
  releaseEngines: {
    argument: '<n>',
    fallback: '2',
    read: readCount({ min: 0, max: 64, example: 2 }),
    help: 'How many engines of releases may be up at a time on this machine: one for each graphics card. With one, an update of a deployment takes that one over for a moment, and jobs wait meanwhile. `0`: only machines that join start them (docs/workers.md).',
    who: 'Operators of machines with several graphics cards, or with one alone.',
  },
} as const satisfies SettingTable

export const FRONTEND_SETTINGS = {
  comfyuiFrontend: {
    argument: '<folder>',
    fallback: 'none',
    read: readWordOr('none', null, readPath),
    help: "Your own copy of the static files of ComfyUI's editor: the folder that holds its `index.html`. It is served on a listener of its own, beside the console. `none`: it is not served. See docs/comfyui-frontend.md.",
    who: "Users who want ComfyUI's own editor in front of the service.",
  },
  comfyuiFrontendPort: {
    argument: '<port>',
    fallback: '8188',
    read: readCount({ min: 0, max: 65_535, example: 8188 }),
    help: 'The port of that listener, on the address of `host`. `0` takes any free port.',
    who: 'Users of the editor on a machine where 8188 is in use.',
  },
  comfyuiFrontendUrl: {
    argument: '<url>',
    fallback: 'none',
    read: readWordOr('none', null, readPublicUrl),
    help: 'Scheme, host and port under which browsers reach that listener, if it is behind a proxy. `none`: what the request says.',
    who: 'Operators who serve the editor behind a proxy.',
  },
  comfyuiTemplates: {
    argument: '<folders>',
    fallback: '',
    read: readList(readPath),
    help: 'Folders with workflow templates for the editor, comma separated; if several have the same file, the first one is used. Empty: the list of templates is empty.',
    who: 'Operators who offer templates of their own in the editor.',
  },
} as const satisfies SettingTable
