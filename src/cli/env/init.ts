/** `atelier env init`: the definition of a build from what somebody has: a ComfyUI on this disk, a workflow, a snapshot, a server that runs. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { isJsonObject, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { readWorkflowFile } from '../run/workflow-file.ts'
import type { RunClient } from '../server/client.ts'
import { toFields } from '../server/job-answers.ts'
import { type Options, type Said, textOf } from '../server/server-commands.ts'
import { CommandError, EXIT, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { askEnv, BUILDER } from './env-api.ts'
import { type Found, freezeServer } from './freeze-server.ts'
import { scanComfyui } from './scan-folder.ts'
import { hasSpec, isFolder, newSpec, type SpecDefinition, specPathOf, writeSpec } from './spec-file.ts'

interface Resolved {
  readonly definition: SpecDefinition
  readonly report: Readonly<Record<string, unknown>>
}

const SOURCES = ['fromWorkflow', 'fromSnapshot', 'fromServer'] as const

export async function init(
  client: RunClient,
  [folder]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const { cwd } = terminal
  const file = specPathOf(folder, cwd)
  if (hasSpec(folder, cwd) && options['force'] !== true)
    throw new CommandError(toPrintable(`${file} is there already; --force replaces it`), EXIT.usage)
  if (!isFolder(path.dirname(file)))
    throw new CommandError(toPrintable(`${path.dirname(file)} is no folder`), EXIT.usage)
  const { definition: found, remarks } = await findDefinition(client, path.dirname(file), options, terminal)
  const [comfy, requirements] = [textOf(options, 'comfy'), textOf(options, 'requirements')]
  const pins = requirements === null ? found.pipDependencies : readText(requirements, cwd).trim()
  const definition: SpecDefinition = {
    ...(found.baseComfyVersion !== undefined && { baseComfyVersion: found.baseComfyVersion }),
    ...(comfy !== null && { baseComfyVersion: comfy.replace(/^(?=\d+\.\d+\.\d+$)/, 'v') }),
    models: found.models ?? [],
    customNodes: found.customNodes ?? [],
    ...(pins !== undefined && pins !== '' && { pipDependencies: pins }),
  }
  const spec = newSpec(textOf(options, 'name') ?? path.basename(path.dirname(file)), definition)
  writeSpec(file, spec)
  const missing =
    definition.baseComfyVersion === undefined
      ? ['no version of ComfyUI was found, and a release needs one: set baseComfyVersion, or give --comfy']
      : []
  const all = [...remarks, ...missing]
  const { models = [], customNodes = [] } = definition
  return {
    answer: { file, spec, remarks: all },
    lines: [
      `${file}: ComfyUI ${definition.baseComfyVersion ?? '(not chosen)'}, ${customNodes.length} packs, ${models.length} models`,
      ...all.map((remark) => `note: ${remark}`),
      `Next: atelier env push${folder === undefined ? '' : ` ${folder}`}`,
    ],
  }
}

async function findDefinition(client: RunClient, folder: string, options: Options, terminal: Terminal): Promise<Found> {
  const given = SOURCES.filter((name) => textOf(options, name) !== null)
  if (given.length > 1)
    throw new CommandError('give one of --from-workflow, --from-snapshot and --from-server', EXIT.usage)
  const text = (name: (typeof SOURCES)[number]) => textOf(options, name) ?? ''
  const say = (line: string) => printLine(terminal.stderr, toPrintable(line))
  switch (given[0]) {
    case 'fromWorkflow': {
      const workflow = JSON.parse(stringifyLosslessJson(readWorkflowFile(text('fromWorkflow'), terminal.cwd)))
      return fromResolved(await resolve(client, 'workflows', { workflow }))
    }
    case 'fromSnapshot': {
      const snapshot = readSnapshot(text('fromSnapshot'), terminal.cwd)
      return fromResolved(await resolve(client, 'snapshots', { snapshot }))
    }
    case 'fromServer':
      return freezeServer(text('fromServer'), {
        resolveSnapshot: async (snapshot) => fromResolved(await resolve(client, 'snapshots', { snapshot })),
        resolveModels: (filenames) =>
          askEnv(client, `${BUILDER}/models/resolve`, { method: 'POST', body: { filenames } }),
      })
    case undefined:
      return scanComfyui(folder, say)
  }
}

const resolve = (client: RunClient, what: 'workflows' | 'snapshots', body: object) =>
  askEnv<Resolved>(client, `${BUILDER}/${what}/resolve`, { method: 'POST', body })

function readText(file: string, cwd: string): string {
  try {
    return readFileSync(path.resolve(cwd, file), 'utf8')
  } catch (error) {
    throw new CommandError(toPrintable(`cannot read ${file}: ${(error as Error).message}`), EXIT.usage)
  }
}

function readSnapshot(file: string, cwd: string): object {
  try {
    const content = parseLosslessJson(readText(file, cwd).replace(/^\ufeff/, ''))
    if (isJsonObject(content)) return JSON.parse(stringifyLosslessJson(content)) as object
  } catch (error) {
    if (error instanceof CommandError) throw error
  }
  throw new CommandError(toPrintable(`${file} is no snapshot: it must be a JSON object`), EXIT.usage)
}

/** In the order in which they are told. */
const TOLD: readonly (readonly [member: string, toRemark: (names: string) => string])[] = [
  ['unresolvedClasses', (names) => `nobody here knows which pack has ${names}: add it to customNodes`],
  [
    'notInRegistry',
    (names) => `of the registry alone, and left out: ${names}. Name a repository with a commit, or upload the pack`,
  ],
  ['registryPending', (names) => `of the registry, not examined there yet: ${names}`],
  ['pinnedToLatest', () => 'some packs say no version that the registry has, and were pinned to the newest one'],
  ['registryProblem', (problem) => `${problem}: what only the registry knows was left out`],
  ['packsWithoutVersion', (names) => `no commit is known of ${names}: the newest is taken when the release is cut`],
  ['collidingNodes', (names) => `two packs are called ${names}: the first is taken`],
  ['unresolvedNodes', (names) => `left out, because nobody can fetch it: ${names}. Upload it as a pack`],
  ['droppedComfyVersion', (name) => `no version of ComfyUI is called ${name}: set baseComfyVersion, or give --comfy`],
  ['unpinnablePins', (names) => `not written as pins: ${names}`],
  [
    'unmatchedModels',
    (names) => `no address is known of ${names}: add it to models, with sourceUri or after an upload`,
  ],
]

function fromResolved({ definition, report }: Resolved): Found {
  const models = Array.isArray(report['models']) ? report['models'].map(toFields) : []
  const unmatched = models.filter(({ status }) => status !== 'matched').map(({ filename }) => filename)
  const told: Readonly<Record<string, unknown>> = { ...report, unmatchedModels: unmatched }
  const remarks = TOLD.flatMap(([member, toRemark]) => {
    const names = [told[member] ?? []].flat()
    return names.length > 0 ? [toRemark(names.map(String).join(', '))] : []
  })
  return { definition, remarks }
}
