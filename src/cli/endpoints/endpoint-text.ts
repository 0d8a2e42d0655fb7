/** Endpoints in words and tables, for people. */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  NumberText,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { toTable } from '../admin/admin-command.ts'
import type {
  DifferenceWire,
  EndpointWire,
  InputWire,
  OutputWire,
  ReleaseWire,
  VersionSummaryWire,
} from './endpoint-api.ts'

// Wide enough to know it by, narrow enough for a table.
const MAX_CELL = 48

export function toInputTable(inputs: readonly InputWire[]): string {
  const rows = inputs.map((input) => [
    input.name,
    input.kind === undefined ? input.type : `file (${input.kind})`,
    input.required ? 'required' : shorten(toDefault(input)),
    shorten(toLimits(input)),
    shorten(input.description || (input.title === input.name ? '' : input.title)),
  ])
  return toTable(['input', 'type', 'default', 'takes', 'what it is'], rows, { empty: 'it has no inputs' })
}

function toDefault({ type, default: preset = null }: InputWire): string {
  if (type === 'seed') return 'random'
  return preset === null ? '' : toShown(preset)
}

/** Texts without quotes: `hello`; everything else as JSON. */
export function toShown(value: JsonValue): string {
  return typeof value === 'string' ? value : stringifyLosslessJson(value)
}

/** Within which bounds a value has to be, in one line. */
export function toLimits(input: InputWire): string {
  const {
    choices,
    open,
    minimum = null,
    maximum = null,
    pattern,
    max_length: most,
    max_pixels: pixels,
    max_bytes: bytes,
  } = input
  const words: string[] = []
  if (choices !== undefined) words.push(`${open === true ? 'such as ' : ''}${choices.map(toShown).join(' | ')}`)
  if (minimum !== null || maximum !== null)
    words.push(`${minimum === null ? '…' : toShown(minimum)} to ${maximum === null ? '…' : toShown(maximum)}`)
  if ((input.min_length ?? 0) > 0) words.push(`at least ${input.min_length} characters`)
  if (most !== undefined) words.push(`at most ${most} characters`)
  if (typeof pattern === 'string') words.push(`like ${pattern}`)
  if (typeof pixels === 'number') words.push(`at most ${pixels} pixels`)
  if (typeof bytes === 'number') words.push(`at most ${bytes} bytes`)
  return words.join(', ')
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length <= MAX_CELL ? line : `${line.slice(0, MAX_CELL - 1)}…`
}

export function toOutputLine(outputs: readonly OutputWire[]): string {
  return `outputs: ${outputs.map(({ name, kind }) => (name === kind ? name : `${name} (${kind})`)).join(', ') || 'none'}`
}

export function toEndpointTable(endpoints: readonly EndpointWire[]): string {
  const rows = endpoints.map((endpoint) => {
    const { name, title, current_version: version, aliases, updated_at: at } = endpoint
    return [name, toState(endpoint), version, toAliases(aliases), at, shorten(title)]
  })
  return toTable(['endpoint', 'state', 'version', 'aliases', 'changed', 'title'], rows, {
    empty: 'there are no endpoints',
  })
}

function toState({ state, owner }: EndpointWire): string {
  return owner === 'service' ? `${state}, of the service` : state
}

function toAliases(aliases: EndpointWire['aliases']): string {
  return Object.entries(aliases)
    .map(([alias, version]) => `${alias}=${version}`)
    .join(' ')
}

export function toEndpointLines(endpoint: EndpointWire): string[] {
  const {
    name,
    title,
    description,
    current_version: current,
    latest_version: latest,
    aliases,
    deployment,
    tool,
  } = endpoint
  return [
    `${name}: ${title}`,
    ...(description === '' ? [] : [description]),
    `state    ${toState(endpoint)}`,
    `version  ${current}${latest === current ? '' : ` (the newest is ${latest})`}${toAliases(aliases) === '' ? '' : `; ${toAliases(aliases)}`}`,
    ...(deployment === null ? [] : [`runs on  the deployment ${deployment}`]),
    `agents   ${tool ? `have it as the tool run_${name.replaceAll('-', '_')}` : 'do not see it'}`,
    `address  ${endpoint.urls.runs}`,
  ]
}

export function toVersionTable(
  versions: readonly VersionSummaryWire[],
  { aliases, current_version: current }: EndpointWire,
): string {
  const hasReleases = versions.some(({ release }) => release !== undefined)
  const rows = versions.map(({ version, created_at: at, created_by: key, note, release }) => {
    const names = Object.entries(aliases).flatMap(([alias, number]) => (number === version ? [alias] : []))
    const known = [...(version === current ? ['current'] : []), ...names]
    const on = release === undefined ? '' : toRelease(release)
    return [version, known, at, key, ...(hasReleases ? [on] : []), shorten(note)]
  })
  const columns = ['version', 'known as', 'published', 'by key', ...(hasReleases ? ['release'] : []), 'note']
  return toTable(columns, rows, { empty: 'it has no versions' })
}

/** `1, pinned; 2 serves now`: on which one it was published, and what became of that. */
function toRelease({ version, pinned, served }: ReleaseWire): string {
  const now = served === null ? 'it is served no more' : `${served} serves now`
  return `${version}${pinned ? ', pinned' : ''}${served === version ? '' : `; ${now}`}`
}

export function toReleaseLines({ release }: Pick<VersionSummaryWire, 'release'>): string[] {
  return release === undefined ? [] : [`release  ${toRelease(release)} (of ${release.deployment})`]
}

export function toDifferenceLines(differences: readonly DifferenceWire[]): string[] {
  return differences.map(({ breaking, message }) => `${breaking ? 'breaks callers: ' : 'changed: '}${message}`)
}

/** What the author should know: what was guessed or left out, and what no engine has. */
export function toFindingLines(warnings: readonly JsonObject[], missing: JsonObject | undefined): string[] {
  const list = (name: string) => (Array.isArray(missing?.[name]) ? missing[name].filter(isJsonObject) : [])
  return [
    ...warnings.map(
      ({ node_id: id, input, message }) => `warning: node ${id}${input === null ? '' : `, input ${input}`}: ${message}`,
    ),
    ...list('classes').map(({ class_type: type }) => `missing: no engine has the class ${type}`),
    ...list('weights').map(({ name, node_id: id }) => `missing: no engine has ${name}, which node ${id} uses`),
    ...[missing?.['release']]
      .filter(isJsonObject)
      .map(
        ({ version, deployment, served }) =>
          `missing: it runs on release ${version} of ${deployment} alone, where ${served === null ? 'it finds none' : `${served} serves now`}`,
      ),
  ]
}

// 64 by 64, one colour.
const PICTURE =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAT0lEQVR42u3PQQkAAAgEsItuBCMY1Qi+hcEKLNXzWgQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQELgtc/AGWii/chAAAAABJRU5ErkJggg=='

/** What has to be given, and the first text, as the workflow that was published has them. */
function toExampleInputs(inputs: readonly InputWire[]): JsonObject {
  const first = inputs.find(({ type }) => type === 'text')
  const shown = inputs.filter((input) => input.required || input === first)
  return Object.fromEntries(shown.map((input) => [input.name, exampleOf(input)]))
}

function exampleOf({ type, kind, example }: InputWire): JsonValue {
  if (type !== 'file') return example instanceof NumberText ? example.value : example
  return kind === 'image' || kind === 'mask' ? PICTURE : 'ID-OF-AN-UPLOADED-FILE'
}

interface CurlOptions {
  readonly url: string
  readonly inputs: readonly InputWire[]
  readonly hasToken: boolean
}

/** Works as it is pasted into a shell. The token is named, not shown. */
export function toCurl({ url, inputs, hasToken }: CurlOptions): string {
  const parts = [
    `curl -sS ${quote(url)}`,
    ...(hasToken ? ['-H "Authorization: Bearer $ATELIER_TOKEN"'] : []),
    `-H 'Content-Type: application/json' -H 'Prefer: wait=60'`,
    `-d ${quote(stringifyLosslessJson({ inputs: toExampleInputs(inputs) }))}`,
  ]
  return parts.join(' \\\n  ')
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
