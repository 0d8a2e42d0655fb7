/** `atelier env push`: what only this machine has is uploaded, then the build is saved. The file remembers what is done, so a push goes on. */
import { openAsBlob } from 'node:fs'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { hashFile } from '../../../lib/files/file-tree.ts'
import { nullWhenMissing } from '../../../lib/files/inside-folder.ts'
import { RefusedError, type RunClient, toRefusal, UnreachableError } from '../server/client.ts'
import type { Options, Said } from '../server/server-commands.ts'
import { CommandError, EXIT, printLine, type Terminal, toPrintable } from '../terminal.ts'
import { askEnv, BUILDER, type BuildWire, type ModelCandidates, readBuild } from './env-api.ts'
import { zipPack } from './scan-folder.ts'
import {
  isFolder,
  readSpec,
  type Spec,
  type SpecDefinition,
  type SpecModel,
  type SpecPack,
  specPathOf,
  toWire,
  writeSpec,
} from './spec-file.ts'

export async function push(
  client: RunClient,
  [folder]: readonly string[],
  options: Options,
  terminal: Terminal,
): Promise<Said> {
  const file = specPathOf(folder, terminal.cwd)
  const say = (line: string) => printLine(terminal.stderr, toPrintable(line))
  const waiting = listWaiting(readSpec(file))
  if (options['dryRun'] === true)
    return {
      answer: { waiting },
      lines: waiting.length === 0 ? ['nothing is to be uploaded'] : waiting.map((what) => `would upload ${what}`),
    }
  const uploaded = await uploadAll(client, file, say)
  const { build, isNew } = await save(client, file, options['force'] === true)
  const warnings = build.warnings ?? []
  return {
    answer: { build: build.id, created: isNew, uploaded, updatedAt: build.updatedAt, warnings },
    lines: [
      `${build.name} is ${isNew ? 'a new build' : 'saved'}: ${build.id}; ${uploaded} uploaded`,
      ...warnings.map(({ field, reason }) => `warning: ${field} ${reason}`),
      `Next: atelier env release${folder === undefined ? '' : ` ${folder}`}`,
    ],
  }
}

async function save(client: RunClient, file: string, isForced: boolean): Promise<{ build: BuildWire; isNew: boolean }> {
  const spec = readSpec(file)
  const body = { name: spec.name, description: spec.description, definition: toWire(spec.definition) }
  const { id } = spec
  const build = await (id === null
    ? askEnv<BuildWire>(client, `${BUILDER}/builds`, { method: 'POST', body })
    : askEnv<BuildWire>(client, `${BUILDER}/builds/${encodeURIComponent(id)}`, {
        method: 'PATCH',
        body: { ...body, expectedUpdatedAt: isForced ? null : spec.syncedRevision },
      })
  ).catch((error: unknown) => {
    if (error instanceof RefusedError && error.lines[0]?.startsWith('stale:'))
      throw new CommandError(
        `${error.lines[0]}; atelier env pull takes what is there, --force overwrites it`,
        EXIT.failed,
      )
    throw error
  })
  writeSpec(file, { ...spec, id: build.id, syncedRevision: build.updatedAt })
  return { build, isNew: id === null }
}

/** Takes what the service has; where its models and packs lie on this machine is known no more. */
export async function pull(
  client: RunClient,
  [folder]: readonly string[],
  _: Options,
  { cwd }: Terminal,
): Promise<Said> {
  const file = specPathOf(folder, cwd)
  const spec = readSpec(file)
  if (spec.id === null) throw new CommandError(toPrintable(`${file} was never pushed`), EXIT.usage)
  const { name, description, definition, updatedAt } = await readBuild(client, spec.id)
  const pulled = { ...spec, name, description, definition, syncedRevision: updatedAt }
  writeSpec(file, pulled)
  return { answer: { file, spec: pulled }, lines: [`${file} is as the service has it (${updatedAt})`] }
}

interface Announced {
  readonly blobId: string
  readonly uploadUrl: string | null
}

/** What lies on this machine alone, in the words of the person. */
function listWaiting({ definition: { models = [], customNodes = [] } }: Spec): string[] {
  return [
    ...customNodes.filter(isLocalPack).map(({ name }) => `pack ${name}`),
    ...models.filter(isLocalModel).map(({ type, filename }) => `model ${type}/${filename}`),
  ]
}

const isLocalPack = ({ blobId, registryVersion, repository, localPath }: SpecPack) =>
  localPath !== undefined && blobId === undefined && registryVersion === undefined && repository === undefined
const isLocalModel = ({ blobId, sourceUri, localPath }: SpecModel) =>
  localPath !== undefined && blobId === undefined && sourceUri === undefined

/** Each entry is written into the file as soon as its bytes are there. */
async function uploadAll(client: RunClient, file: string, say: (line: string) => void): Promise<number> {
  const scratch = await mkdtemp(path.join(tmpdir(), 'atelier-env-'))
  try {
    let uploaded = 0
    for (;;) {
      const { definition, ...spec } = readSpec(file)
      const { models = [], customNodes = [] } = definition
      const [pack, model] = [customNodes.findIndex(isLocalPack), models.findIndex(isLocalModel)]
      if (pack === -1 && model === -1) return uploaded
      const [at, found] = [path.dirname(file), uploaded + 1]
      const sent: SpecDefinition =
        pack === -1
          ? { ...definition, models: models.with(model, await sendModel(client, models[model], { at, say })) }
          : {
              ...definition,
              customNodes: customNodes.with(pack, await sendPack(client, customNodes[pack], { at, say, scratch })),
            }
      writeSpec(file, { ...spec, definition: sent })
      uploaded = found
    }
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

interface Sending {
  /** The folder that paths of the file begin at. */
  readonly at: string
  readonly say: (line: string) => void
}

async function sendPack(
  client: RunClient,
  pack: SpecPack,
  { at, say, scratch }: Sending & { readonly scratch: string },
): Promise<SpecPack> {
  const zip = path.join(scratch, 'pack.zip')
  const folder = path.resolve(at, pack.localPath ?? '')
  if (!isFolder(folder)) throw gone(`pack ${pack.name}`, folder)
  await zipPack(folder, zip)
  const sha256 = await hashFile(zip)
  const blobId = await sendBlob(client, { file: zip, kind: 'node_zip', filename: `${pack.name}.zip`, sha256, say })
  return { ...pack, blobId, localDigest: sha256, localSizeBytes: (await stat(zip)).size }
}

/** Where an earlier release has the same bytes from an address, that address is taken, and nothing is sent. */
async function sendModel(client: RunClient, model: SpecModel, { at, say }: Sending): Promise<SpecModel> {
  const { type, filename, localPath = '' } = model
  const file = path.resolve(at, localPath)
  if ((await stat(file).catch(nullWhenMissing)) === null) throw gone(`model ${type}/${filename}`, file)
  // As it is now: a hash that was read earlier may be that of other bytes.
  const sha256 = await hashFile(file)
  const [known] = (
    await askEnv<{ readonly results: readonly ModelCandidates[] }>(client, `${BUILDER}/models/resolve`, {
      ...{ method: 'POST', body: { filenames: [filename] } },
    })
  ).results
  const same = known?.candidates.find((candidate) => candidate.sha256 === sha256)
  if (same !== undefined) {
    say(`${type}/${filename} has these bytes at ${same.sourceUri}`)
    return { ...model, sha256, sourceUri: same.sourceUri }
  }
  return { ...model, sha256, blobId: await sendBlob(client, { file, kind: 'model', filename, sha256, say }) }
}

interface BlobToSend extends Pick<Sending, 'say'> {
  readonly file: string
  readonly kind: 'model' | 'node_zip'
  readonly filename: string
  readonly sha256: string
}

async function sendBlob(client: RunClient, { file, say, ...announced }: BlobToSend): Promise<string> {
  const bytes = await openAsBlob(file)
  const body = { ...announced, sizeBytes: bytes.size }
  const { blobId, uploadUrl } = await askEnv<Announced>(client, `${BUILDER}/blobs`, { method: 'POST', body })
  if (uploadUrl === null) {
    say(`${announced.filename} is there already`)
    return blobId
  }
  say(`uploading ${announced.filename} (${bytes.size} bytes)`)
  // The address is all the right that is needed: no token goes with it.
  const answer = await fetch(uploadUrl, { method: 'PUT', body: bytes, redirect: 'error' }).catch((error: Error) => {
    throw new UnreachableError(`the upload of ${announced.filename} broke off (${error.message}); push again to go on`)
  })
  if (answer.ok) return blobId
  throw await toRefusal(answer)
}

function gone(what: string, where: string): CommandError {
  return new CommandError(toPrintable(`${what} is not there any more: ${where}`), EXIT.failed)
}
