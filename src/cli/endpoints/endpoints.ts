/**
 * `atelier endpoints`: workflows as addresses with named, typed inputs. Publishes files as versions, moves between versions, and writes
 * clients. Everything happens on a server, which checks it; `--json` prints what it answered.
 */
import type { Command } from 'commander'
import { type JsonValue, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { RunClient } from '../server/client.ts'
import {
  type Ask,
  addServerCommands,
  type Options,
  type Said,
  type ServerCommand,
  textOf,
  toFile,
} from '../server/server-commands.ts'
import { CommandError, EXIT, type Finish, type Terminal } from '../terminal.ts'
import {
  askEndpoints,
  type DifferenceWire,
  type EndpointWire,
  listEndpoints,
  pathOf,
  readEndpoint,
  readVersion,
  type VersionSummaryWire,
} from './endpoint-api.ts'
import {
  toDifferenceLines,
  toEndpointLines,
  toEndpointTable,
  toFindingLines,
  toInputTable,
  toOutputLine,
  toReleaseLines,
  toVersionTable,
} from './endpoint-text.ts'
import { callers, limits, usage } from './limits.ts'
import { addPrice } from './price.ts'
import { importFile, preview, publish } from './publish.ts'
import { listShares, SHARE_FLAGS, share, unshare } from './share.ts'
import { writeClient } from './write-client.ts'

const TEXT_FLAGS = [
  ['--title <text>', 'what people call it'],
  ['--description <text>', 'what it does'],
  ['--note <text>', 'what is new in this version'],
  ['--breaking', 'it is meant that this breaks callers of the current version'],
  ['--deployment <id>', 'whose workers run it'],
  ['--pin-release', 'this version runs on the release that its deployment serves now, or not at all'],
  ['--no-tool', 'agents do not get it as a tool'],
] as const
const DECLARE = [
  '--declare <file.yaml>',
  'what inputs and outputs it has; default: FILE.yaml or BASE.endpoint.yaml beside the file',
] as const
const VERSION = ['--version <version>', 'a number, latest or an alias; default: the current one'] as const

const COMMANDS: readonly ServerCommand[] = [
  {
    usage: 'publish <name> <file>',
    description: 'make an endpoint, or its next version, of a workflow or of a picture that carries one',
    flags: [DECLARE, ...TEXT_FLAGS],
    ask: publish,
  },
  {
    usage: 'preview <file>',
    description: 'say which inputs and outputs a file would have, and what else could be an input; stores nothing',
    flags: [DECLARE],
    ask: preview,
  },
  {
    usage: 'list',
    description: 'list the endpoints of the account',
    flags: [['--shared', 'those of other accounts that may be called, as OWNER/NAME']],
    ask: list,
  },
  { usage: 'show <name>', description: 'one endpoint with its inputs', flags: [VERSION], ask: show },
  { usage: 'versions <name>', description: 'the versions of an endpoint, the newest first', ask: showVersions },
  {
    usage: 'diff <name> <from> <to>',
    description: 'what differs between two versions, and what of it breaks callers',
    ask: diff,
  },
  {
    usage: 'rollback <name> [version]',
    description: 'make another version the current one: by default the one before; also moves forward',
    ask: rollback,
  },
  {
    usage: 'alias <name> <alias> [version]',
    description: 'give a version a name that callers may use: name@alias',
    flags: [['--remove', 'take the name away instead']],
    ask: moveAlias,
  },
  {
    usage: 'limits <name>',
    description: 'what calls are allowed, and what counts for it now; with flags, changes it',
    flags: [
      ['--in-flight <count>', 'runs that wait or run at a time, or none'],
      ['--runs <list>', 'runs in a period: 100/day,10/hour; none/day takes one away'],
      ['--spend <list>', 'US dollars in a period: 5.00/day,100/month'],
      ['--none', 'take all limits away'],
    ],
    ask: limits,
  },
  {
    usage: 'callers <name> [accounts...]',
    description: 'which other accounts may call it; with accounts, it is these from now on',
    flags: [
      ['--everyone', 'every account'],
      ['--nobody', 'no other account'],
    ],
    ask: callers,
  },
  {
    usage: 'usage <name>',
    description: 'runs, seconds and charges of this month, or of another period',
    flags: [
      ['--from <date>', 'the first day'],
      ['--to <date>', 'the day after the last one'],
      ['--tz <zone>', 'whose days, such as Europe/Vienna; default: UTC'],
      ['--by <day|version>', 'what the lines are by; default: day'],
      ['--others', 'runs that other accounts made of it, in place of those of the account'],
    ],
    ask: usage,
  },
  { usage: 'stop <name>', description: 'take no calls until it is started again', ask: setState('stopped') },
  { usage: 'start <name>', description: 'take calls again', ask: setState('ready') },
  { usage: 'delete <name>', description: 'remove an endpoint with its versions; jobs that it made stay', ask: remove },
  {
    usage: 'export <name>',
    description: 'one file with everything that import needs',
    flags: [VERSION, ['-o, --out <file>', 'where to write it; default: standard output']],
    ask: exportFile,
  },
  {
    usage: 'import <file>',
    description: 'publish what export wrote',
    flags: [['--name <name>', 'under this name instead of its own'], ...TEXT_FLAGS],
    ask: importFile,
  },
  {
    usage: 'client <name>',
    description: 'write a typed client: one file without dependencies',
    flags: [
      ['--lang <ts|python>', 'the language; default: as --out ends, else ts'],
      ['-o, --out <file>', 'where to write it; default: standard output'],
      ['--version <version>', 'always call this version: a number, latest or an alias'],
    ],
    ask: writeClient,
  },
  {
    usage: 'share <name>',
    description: 'make a link: whoever has it runs the endpoint on a page, at the cost of the account',
    flags: SHARE_FLAGS,
    ask: share,
  },
  { usage: 'shares <name>', description: 'the links of an endpoint, and what was used of them', ask: listShares },
  { usage: 'unshare <name> <id>', description: 'make a link lead nowhere, at once', ask: unshare },
]

export function addEndpoints(program: Command, terminal: Terminal, finish: Finish): void {
  const endpoints = program
    .command('endpoints')
    .description('workflows as addresses with named inputs: publish, compare, roll back, write clients')
  addPrice(endpoints, { terminal, finish })
  addServerCommands(endpoints, COMMANDS, { terminal, finish })
}

async function list(client: RunClient, _: readonly string[], options: Options): Promise<Said> {
  const endpoints = await listEndpoints(client, { areShared: options['shared'] === true })
  return { answer: { endpoints }, lines: [toEndpointTable(endpoints)] }
}

async function show(client: RunClient, [name]: readonly string[], options: Options): Promise<Said> {
  const endpoint = await readEndpoint(client, name)
  const version = await readVersion(client, name, textOf(options, 'version') ?? String(endpoint.current_version))
  const lines = [
    ...toEndpointLines(endpoint),
    ...(version.version === endpoint.current_version ? [] : ['', `version ${version.version}:`]),
    ...toReleaseLines(version),
    ...['', toInputTable(version.inputs), toOutputLine(version.outputs), ...toFindingLines([], endpoint.missing)],
  ]
  return { answer: { endpoint, version }, lines }
}

async function showVersions(client: RunClient, [name]: readonly string[]): Promise<Said> {
  const endpoint = await readEndpoint(client, name)
  const versions: VersionSummaryWire[] = []
  for (;;) {
    const before = versions.at(-1)
    const query = new URLSearchParams({ limit: '100', ...(before !== undefined && { before: String(before.version) }) })
    const page = await askEndpoints<{ versions: VersionSummaryWire[]; has_more: boolean }>(
      client,
      `${pathOf(name, 'versions')}?${query}`,
    )
    versions.push(...page.versions)
    if (!page.has_more || page.versions.length === 0) break
  }
  return { answer: { versions }, lines: [toVersionTable(versions, endpoint)] }
}

async function diff(client: RunClient, [name, from, to]: readonly string[]): Promise<Said> {
  const query = new URLSearchParams({ from, to })
  const answer = await askEndpoints<{ differences: DifferenceWire[] }>(client, `${pathOf(name, 'compare')}?${query}`)
  const lines = toDifferenceLines(answer.differences)
  return { answer, lines: lines.length === 0 ? ['nothing differs'] : lines }
}

async function rollback(client: RunClient, [name, wanted]: readonly string[]): Promise<Said> {
  const endpoint = await readEndpoint(client, name)
  const version =
    wanted === undefined ? await versionBefore(client, endpoint) : (await readVersion(client, name, wanted)).version
  // Somebody who publishes meanwhile is not undone unseen.
  const headers = { 'If-Match': `"${endpoint.revision}"` }
  const body = { current_version: version }
  const answer = await askEndpoints<EndpointWire>(client, pathOf(name), { method: 'PATCH', body, headers })
  return {
    answer,
    lines: [`${name} runs version ${answer.current_version}; before it was ${endpoint.current_version}`],
  }
}

async function versionBefore(client: RunClient, { name, current_version: current }: EndpointWire): Promise<number> {
  const path = `${pathOf(name, 'versions')}?${new URLSearchParams({ before: String(current), limit: '1' })}`
  const { versions } = await askEndpoints<{ versions: VersionSummaryWire[] }>(client, path)
  if (versions.length === 0) throw new CommandError(`${name} has no version before ${current}`, EXIT.failed)
  return versions[0].version
}

async function moveAlias(client: RunClient, [name, alias, wanted]: readonly string[], options: Options): Promise<Said> {
  const isRemoved = options['remove'] === true
  if (isRemoved === (wanted !== undefined))
    throw new CommandError('name the version that the alias is for, or --remove it', EXIT.usage)
  const path = pathOf(name, 'aliases', alias)
  if (isRemoved) {
    const answer = await askEndpoints<EndpointWire>(client, path, { method: 'DELETE' })
    return { answer, lines: [`${name}@${alias} is no longer there`] }
  }
  const { version } = await readVersion(client, name, wanted)
  const answer = await askEndpoints<EndpointWire>(client, path, { method: 'PUT', body: { version } })
  return { answer, lines: [`${name}@${alias} is version ${version}`] }
}

function setState(state: 'ready' | 'stopped'): Ask {
  return async (client, [name]) => {
    const answer = await askEndpoints<EndpointWire>(client, pathOf(name), { method: 'PATCH', body: { state } })
    return { answer, lines: [`${name} is ${answer.state}`] }
  }
}

async function remove(client: RunClient, [name]: readonly string[]): Promise<Said> {
  await askEndpoints<null>(client, pathOf(name), { method: 'DELETE' })
  return { answer: { deleted: name }, lines: [`${name} is gone`] }
}

async function exportFile(
  client: RunClient,
  [name]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const version = textOf(options, 'version')
  const query = version === null ? '' : `?${new URLSearchParams({ version })}`
  const answer = await askEndpoints<JsonValue>(client, `${pathOf(name, 'export')}${query}`)
  return { answer, lines: toFile(stringifyLosslessJson(answer), options, terminal) }
}
