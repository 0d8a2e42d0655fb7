/**
 * `comfy-build.yaml`: the working copy of a build beside a ComfyUI, with the revision that it was last synchronised with. The same file
 * as that of the official command line, so that either may go on with what the other has written; what is not known here is kept.
 */
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parse, stringify } from 'yaml'
import { CommandError, EXIT, toPrintable } from '../terminal.ts'
import type { Definition, ModelWire, PackWire } from './env-api.ts'

/** What a scan knows beside what the service needs; never sent. */
export interface SpecModel extends ModelWire {
  readonly source?: 'local'
  readonly localPath?: string
  readonly sizeBytes?: number
}

export interface SpecPack extends PackWire {
  readonly source?: 'git' | 'registry' | 'local'
  readonly localPath?: string
  readonly localDigest?: string
  readonly localSizeBytes?: number
}

export interface SpecDefinition extends Definition {
  readonly models?: readonly SpecModel[]
  readonly customNodes?: readonly SpecPack[]
}

export interface Spec {
  readonly schema: string
  /** null until it is pushed. */
  readonly id: string | null
  readonly name: string
  readonly description: string
  readonly syncedRevision: string | null
  readonly definition: SpecDefinition
}

const FILE = 'comfy-build.yaml'
const SCHEMA = 'comfy-build/1'
const DEFINITION_SCHEMA = 'distribution-definition/0'

/** The file, or the one in a folder. */
export function specPathOf(given: string | undefined, cwd: string): string {
  const full = path.resolve(cwd, given ?? '.')
  return /\.(?:ya?ml|json)$/.test(full) ? full : path.join(full, FILE)
}

export const hasSpec = (given: string | undefined, cwd: string): boolean => existsSync(specPathOf(given, cwd))

export function readSpec(file: string): Spec {
  let content: unknown
  try {
    content = parse(readFileSync(file, 'utf8'))
  } catch (error) {
    const reason = String((error as Error).message).split('\n')[0]
    throw refuse(`cannot read ${file}: ${reason}; atelier env init makes one`)
  }
  const spec = content as Partial<Spec> | null
  if (spec?.schema !== SCHEMA) throw refuse(`${file} is no build: its schema must be ${SCHEMA}`)
  const { id = null, name, description = '', syncedRevision = null, definition } = spec
  if (typeof name !== 'string' || name === '') throw refuse(`${file}: name must be a text`)
  if (typeof definition !== 'object' || definition === null) throw refuse(`${file}: definition must be an object`)
  for (const list of ['models', 'customNodes'] as const)
    if (definition[list] !== undefined && !Array.isArray(definition[list]))
      throw refuse(`${file}: definition.${list} must be a list`)
  return { ...spec, schema: SCHEMA, id, name, description, syncedRevision, definition }
}

export function writeSpec(file: string, spec: Spec): void {
  const { schema, id, name, description, syncedRevision, definition, ...others } = spec
  const ordered = {
    ...{ schema, id, name, description, syncedRevision },
    definition: { schema: DEFINITION_SCHEMA, ...definition },
    ...others,
  }
  const text = file.endsWith('.json')
    ? `${JSON.stringify(ordered, null, 2)}\n`
    : stringify(ordered, { aliasDuplicateObjects: false, lineWidth: 0 })
  try {
    // Whole or not at all: it remembers what is uploaded.
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  } catch (error) {
    throw new CommandError(toPrintable(`cannot write ${file}: ${(error as Error).message}`), EXIT.failed)
  }
}

export function newSpec(name: string, definition: SpecDefinition): Spec {
  return { schema: SCHEMA, id: null, name, description: '', syncedRevision: null, definition }
}

/** What the service takes: without what only this machine knows, and of each entry the one source that counts. */
export function toWire({ schema: _schema, environment: _environment, ...definition }: SpecDefinition): Definition {
  const { models = [], customNodes = [] } = definition
  return { ...definition, models: models.map(toWireModel), customNodes: customNodes.map(toWirePack) }
}

function toWireModel(model: SpecModel): ModelWire {
  const { source: _source, localPath: _path, sizeBytes: _size, blobId, sourceUri, ...kept } = model
  return { ...kept, ...(blobId !== undefined ? { blobId } : sourceUri !== undefined && { sourceUri }) }
}

function toWirePack(pack: SpecPack): PackWire {
  const { source: _source, localPath: _path, localDigest: _digest, localSizeBytes: _size, ...kept } = pack
  const { blobId, id, registryVersion, repository, gitRef, commit, ...plain } = kept
  if (blobId !== undefined) return { ...plain, blobId }
  if (registryVersion !== undefined && id !== undefined) return { ...plain, id, registryVersion }
  const at = { ...(gitRef !== undefined && { gitRef }), ...(commit !== undefined && { commit }) }
  return repository === undefined ? kept : { ...plain, repository, ...at }
}

export const isFolder = (folder: string): boolean => statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true

function refuse(message: string): CommandError {
  return new CommandError(toPrintable(message), EXIT.usage)
}
