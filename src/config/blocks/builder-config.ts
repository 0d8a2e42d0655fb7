/** Whether this process makes environments of releases, from what and where, and what the hosts of models are told. */
import { isAbsolute, join, relative } from 'node:path'
import { ConfigError } from '../config-error.ts'
import { loadBlock } from '../readers/read-choice.ts'
import { readCorsOrigin } from '../readers/read-network.ts'
import { GIB, MIB, readBytes, readDurationMs, SECOND, TIB } from '../readers/read-quantity.ts'
import { Secret } from '../secrets.ts'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'
import { areHostHeaders } from './input-urls-config.ts'

export interface BuilderConfig {
  readonly directory: string
  readonly comfyui:
    | { readonly kind: 'git'; readonly address: string }
    | { readonly kind: 'zip' | 'folder'; readonly path: string }
  /** null: a pack always has a source of its own. */
  readonly packFolder: string | null
  readonly modelFolders: readonly string[]
  /** null: none. */
  readonly registry:
    | { readonly kind: 'address'; readonly address: string }
    | { readonly kind: 'folder'; readonly path: string }
    | null
  readonly indexes: readonly string[]
  readonly wheelFolders: readonly string[]
  /** An address or a path, perhaps with `{variant}`; null: the public index of torch, or `indexes`. */
  readonly torch: string | null
  readonly pythons: readonly string[]
  /** null: found on the path, or installed. */
  readonly uv: string | null
  /** As `os/gpu`; null: what this machine is. */
  readonly targets: readonly string[] | null
  /** Origins that may be plain http and lie in a private network. */
  readonly origins: readonly string[]
  readonly maxBytes: number
  /** Of the releases of one account. */
  readonly maxAccountBytes: number
  readonly maxModelBytes: number
  readonly spareBytes: number
  readonly startWithinMs: number
  /** The name of another user of the system; null: that of the service. */
  readonly user: string | null
}

const COMFYUI = 'https://github.com/comfyanonymous/ComfyUI'
const REGISTRY = 'https://api.comfy.org'
const MEMBERS = [
  ...[
    'folder',
    'comfyui',
    'packs',
    'models',
    'registry',
    'indexes',
    'wheels',
    'torch',
    'pythons',
    'uv',
    'targets',
    'origins',
    'headers',
  ],
  ...['max_size', 'max_account_size', 'max_model_size', 'spare', 'start_within', 'user'],
]
const TARGET = /^(?:linux|darwin|windows)\/(?:nvidia|amd|apple|cpu)$/

type Given = Readonly<Record<string, unknown>>

export function toBuilderConfig({ builder, dataDir }: SettingValues, toAbsolute: ToAbsolute): BuilderConfig | null {
  const given = readGiven(builder, toAbsolute)
  if (given === null) return null
  const path = (text: string) => toAbsolute('builder', text)
  const text = (name: string) => readText(name, given)
  const optionalPath = (name: string) => (given[name] === undefined ? null : path(text(name)))
  const size = (name: string, fallback: number) =>
    readQuantity(name, given, readBytes({ min: MIB, max: 1024 * TIB })) ?? fallback
  const maxBytes = size('max_size', 500 * GIB)
  const targets = given['targets'] === undefined ? null : readTexts('targets', given)
  const wrongTarget = targets?.find((target) => !TARGET.test(target))
  if (wrongTarget !== undefined)
    throw wrong('targets', `has ${JSON.stringify(wrongTarget)}; give for example linux/nvidia`)
  const data = toAbsolute('dataDir', dataDir)
  const directory = optionalPath('folder') ?? join(data, 'builder')
  const user = given['user'] === undefined ? null : text('user')
  if (user !== null && !relative(data, directory).startsWith('..'))
    throw wrong('folder', 'must lie outside of the data folder when "user" is given, who cannot enter that one')
  return {
    directory,
    comfyui: readComfyui(given['comfyui'] === undefined ? COMFYUI : text('comfyui'), path),
    packFolder: optionalPath('packs'),
    modelFolders: readTexts('models', given).map(path),
    registry: readRegistry(given['registry'] === undefined ? REGISTRY : text('registry'), path),
    indexes: readTexts('indexes', given).map(readIndex),
    wheelFolders: readTexts('wheels', given).map(path),
    torch: given['torch'] === undefined ? null : readTorch(text('torch'), path),
    pythons: readTexts('pythons', given).map((name) => (name.includes('/') ? path(name) : name)),
    uv: optionalPath('uv'),
    targets,
    origins: readTexts('origins', given).map((origin) => {
      try {
        return readCorsOrigin(origin)
      } catch (error) {
        throw wrong('origins', (error as Error).message)
      }
    }),
    maxBytes,
    maxAccountBytes: size('max_account_size', Math.floor(maxBytes / 2)),
    maxModelBytes: size('max_model_size', 100 * GIB),
    spareBytes: size('spare', 2 * GIB),
    startWithinMs:
      readQuantity('start_within', given, readDurationMs({ min: SECOND, max: 3600 * SECOND })) ?? 600 * SECOND,
    user,
  }
}

/** By the name of a host, the headers that requests for models carry, as JSON; null: none. */
export function toBuilderHeaders({ builder }: SettingValues, toAbsolute: ToAbsolute): Secret<string> | null {
  const { headers = {} } = readGiven(builder, toAbsolute) ?? {}
  if (!areHostHeaders(headers))
    throw wrong('headers', 'must hold, for each host, an object with the headers that it is sent')
  return Object.keys(headers as object).length === 0 ? null : new Secret(JSON.stringify(headers))
}

function readGiven(setting: SettingValues['builder'], toAbsolute: ToAbsolute): Given | null {
  if (setting === null) return null
  const given = setting.kind === 'on' ? {} : (loadBlock('builder', setting, toAbsolute) as Given)
  const unknown = Object.keys(given).find((name) => !MEMBERS.includes(name))
  if (unknown !== undefined)
    throw new ConfigError(`builder has the unknown member "${unknown}"; use ${MEMBERS.join(', ')}`)
  return given
}

function wrong(name: string, problem: string): ConfigError {
  return new ConfigError(`"${name}" of builder ${problem}`)
}

function readText(name: string, given: Given): string {
  const value = given[name]
  if (typeof value === 'string' && value !== '' && !value.includes('\0')) return value
  throw wrong(name, 'must be a text')
}

function readTexts(name: string, given: Given): readonly string[] {
  const value = given[name] ?? []
  if (Array.isArray(value) && value.length <= 100 && value.every((item) => typeof item === 'string' && item !== ''))
    return value as string[]
  throw wrong(name, 'must be a list of texts')
}

function readQuantity(name: string, given: Given, read: (text: string) => number): number | null {
  if (given[name] === undefined) return null
  try {
    return read(readText(name, given))
  } catch (error) {
    throw error instanceof ConfigError ? error : wrong(name, (error as Error).message)
  }
}

function readComfyui(text: string, path: (text: string) => string): BuilderConfig['comfyui'] {
  const url = URL.parse(text)
  if (url !== null && !isAbsolute(text)) {
    if (!['https:', 'http:', 'file:'].includes(url.protocol))
      throw wrong('comfyui', 'must be an https address of a git repository, a zip file or a folder')
    if (url.username !== '' || url.password !== '')
      throw wrong('comfyui', 'has a user name or password; give the address alone')
    return { kind: 'git', address: text }
  }
  return { kind: text.endsWith('.zip') ? 'zip' : 'folder', path: path(text) }
}

function readRegistry(text: string, path: (text: string) => string): BuilderConfig['registry'] {
  if (text === 'none') return null
  if (!/^https?:/.test(text)) return { kind: 'folder', path: path(text) }
  const url = URL.parse(text)
  if (url === null || url.search !== '' || url.hash !== '')
    throw wrong('registry', 'must be an address without a query, a folder or none')
  if (url.username !== '' || url.password !== '')
    throw wrong('registry', 'has a user name or password; give the address alone')
  return { kind: 'address', address: text.replace(/\/+$/, '') }
}

function readTorch(text: string, path: (text: string) => string): string {
  if (!/^https?:/.test(text)) return path(text)
  const url = URL.parse(text)
  if (url !== null && url.username === '' && url.password === '') return text.replace(/\/+$/, '')
  throw wrong(
    'torch',
    'must be an address without a user name or password, or a folder; {variant} in it stands for cpu, cu130 and so on',
  )
}

function readIndex(text: string): string {
  const url = URL.parse(text)
  if (url === null || !['https:', 'http:'].includes(url.protocol))
    throw wrong('indexes', `has ${JSON.stringify(text)}, which is no http(s) address`)
  if (url.username !== '' || url.password !== '')
    throw wrong('indexes', 'has a user name or password; put them into .netrc in the folder "home" of the builder')
  return text
}
