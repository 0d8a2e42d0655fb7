/** `atelier endpoints publish|preview|import`: from a file to an address that can be called. */
import { isJsonObject, type JsonObject } from '../../../lib/json/lossless-json.ts'
import { ENV } from '../../config/env.ts'
import type { RunClient } from '../server/client.ts'
import { type Options, type Said, textOf } from '../server/server-commands.ts'
import { CommandError, EXIT, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { askEndpoints, type DraftWire, type PublishedWire } from './endpoint-api.ts'
import { toCurl, toDifferenceLines, toFindingLines, toInputTable, toOutputLine } from './endpoint-text.ts'
import { findDeclaration, readDeclaration, readJsonFile, readPublishFile } from './publish-files.ts'

export async function publish(
  client: RunClient,
  [name, file]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  return send(client, { name, ...readFiles(file, options, terminal), ...readTexts(options) }, { options, terminal })
}

export async function preview(
  client: RunClient,
  [file]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const body = readFiles(file, options, terminal)
  const answer = await askEndpoints<DraftWire>(client, '/preview', { method: 'POST', body })
  const { inputs, outputs, candidates, warnings, missing } = answer
  const others = candidates.map((input) => input.name).join(', ')
  return {
    answer,
    lines: [
      ...[toInputTable(inputs), toOutputLine(outputs)],
      ...(others === '' ? [] : ['', `could be inputs, if a declaration says so: ${others}`]),
      ...toFindingLines(warnings, missing),
    ],
  }
}

/** What `export` wrote is published as it was; flags win over what is in the file. */
export async function importFile(
  client: RunClient,
  [file]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const content = readJsonFile(file, terminal.cwd)
  const { atelier_endpoint: format, name: own, title, description, tool, models, version } = content
  if (format !== 1 || !isJsonObject(version))
    throw new CommandError(toPrintable(`${file} is not a file that atelier endpoints export wrote`), EXIT.usage)
  const name = textOf(options, 'name') ?? own
  const note = version['note'] ?? ''
  const kept = Object.fromEntries(
    Object.entries({ title, description, tool, models, note }).filter(([, value]) => value !== undefined),
  )
  return send(client, { ...kept, ...readTexts(options), name, file: content }, { options, terminal })
}

function readFiles(file: string, options: Options, { cwd, stderr }: Terminal): JsonObject {
  const content = readPublishFile(file, cwd)
  const declared = textOf(options, 'declare')
  const beside = declared === null ? findDeclaration(file, cwd) : null
  if (beside !== null) printLine(stderr, toPrintable(`inputs as ${beside} says`))
  const declaration = declared ?? beside
  return { file: content, ...(declaration !== null && { declaration: readDeclaration(declaration, cwd) }) }
}

function readTexts(options: Options): JsonObject {
  const texts: JsonObject = {}
  for (const name of ['title', 'description', 'note', 'deployment']) {
    const text = textOf(options, name)
    if (text !== null) texts[name] = text
  }
  // Commander sets what a --no- flag stands for to true when it is not there.
  return {
    ...texts,
    ...(options['breaking'] === true && { breaking: true }),
    ...(options['tool'] === false && { tool: false }),
  }
}

async function send(
  client: RunClient,
  body: JsonObject,
  { options, terminal }: { readonly options: Options; readonly terminal: Terminal },
): Promise<Said> {
  const answer = await askEndpoints<PublishedWire>(client, '', { method: 'POST', body })
  const { endpoint, version, is_new: isNew, differences, warnings, missing } = answer
  const { name, state, urls } = endpoint
  const environment = terminal.env[ENV.token]
  const token = textOf(options, 'token') ?? environment ?? null
  const lines = [
    isNew
      ? `${name} version ${version.version} is published`
      : `${name} has this already as version ${version.version}, which is current now`,
    `address: ${urls.runs}`,
    ...['', toInputTable(version.inputs), toOutputLine(version.outputs), ''],
    ...toDifferenceLines(differences),
    ...toFindingLines(warnings, missing),
    ...(state === 'blocked' ? ['It cannot run until an engine has what is missing.'] : []),
    ...(state === 'stopped' ? [`It takes no calls until: atelier endpoints start ${name}`] : []),
    ...(token !== null && token !== environment ? [`export ${ENV.token}=…   # your key, for the next line`] : []),
    toCurl({ url: urls.runs, inputs: version.inputs, hasToken: token !== null }),
  ]
  return { answer, lines }
}
