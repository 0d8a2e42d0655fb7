/** A file by its name, and what the editor asks about a video. */
import { readVideoFacts } from '../../../../lib/files/video-facts.ts'
import type { Asset } from '../../../domain/assets/asset.ts'
import { mustRead } from '../../../domain/assets/asset-content.ts'
import type { FileLocation } from '../../../domain/assets/named-files.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { collectBytes, leavesFolder, readAnnotated, readFolder, toBaseName, toSubfolder } from '../files/file-names.ts'
import { createSendFile, readPictureChange } from '../files/send-file.ts'
import { type Api, type OperationDeps, queryOf, sendJson } from '../legacy-operation.ts'

const HASH_NAME = /^blake3:([0-9a-f]{64})$/i

export function getView(api: Api, deps: OperationDeps): void {
  const { assets, announcedFiles } = deps
  const sendFile = createSendFile(deps)

  async function find(accountId: string, query: URLSearchParams): Promise<{ asset: Asset; name: string }> {
    const hash = HASH_NAME.exec(query.get('filename') ?? '')?.[1]
    const location = hash === undefined ? readLocation(query) : null
    const look = () =>
      location === null
        ? assets.findByHash(accountId, (hash as string).toLowerCase())
        : assets.find(accountId, location)
    const asset = location === null ? await look() : await announcedFiles.find({ accountId, ...location }, look)
    if (asset === null) throw new ServiceError('not_found', 'there is no file of this name')
    return { asset, name: location?.name ?? toBaseName(asset.filePath ?? asset.id) }
  }

  api.both('GET', '/view', 'asset', async (request, reply) => {
    const caller = deps.callerOf(request)
    const { accountId } = caller
    const query = queryOf(request)
    await mustRead(caller, async () => (await find(accountId, query)).asset)
    const change = readPictureChange(query)
    return sendFile(request, reply, { ...(await find(accountId, query)), accountId, change })
  })
}

/** In ComfyUI's order: no name is 404, a name that leads out of its folder 400, a subfolder that does so 403. */
function readLocation(query: URLSearchParams): FileLocation {
  const given = query.get('filename') ?? ''
  if (given === '') throw new ServiceError('not_found', 'filename is missing')
  const { name, folder: annotated } = readAnnotated(given)
  if (name.startsWith('/') || name.includes('..') || name.includes('\0')) {
    throw new ServiceError('invalid_request', 'filename must not lead out of its folder')
  }
  const folder = annotated ?? readFolder(query.get('type') || 'output')
  if (folder === null) throw new ServiceError('invalid_request', 'type must be input, output or temp')
  const subfolder = query.get('subfolder') ?? ''
  if (leavesFolder(subfolder)) throw new ServiceError('forbidden', 'subfolder must not lead out of its folder')
  const base = toBaseName(name)
  if (base === '') throw new ServiceError('not_found', 'there is no file of this name')
  return { folder, name: base, subfolder: toSubfolder(subfolder) }
}

// What the editor asks about a video before it shows it frame by frame.

// The tables of an hour of video.
const MAX_RANGE_BYTES = 33_554_432

/** Of MP4 and MOV; other files have none, as on a server that cannot read them. */
export function getVideoMetadata(api: Api, { assets, callerOf }: OperationDeps): void {
  api.both('GET', '/video_metadata', 'asset', async (request, reply) => {
    const caller = callerOf(request)
    const find = async () => assets.find(caller.accountId, readLocation(queryOf(request)))
    await mustRead(caller, async () => (await find()) ?? { jobId: null })
    const asset = await find()
    const facts = asset === null ? null : await readVideoFacts(readRange, asset.sizeBytes)
    if (asset === null || facts === null) throw new ServiceError('not_found', 'there is no video of this name')
    const { width, height, fps, durationSeconds: duration, frameCount: frame_count } = facts
    return sendJson(reply, { fps, duration, frame_count, width, height, size: asset.sizeBytes })

    async function readRange(start: number, length: number): Promise<Buffer> {
      if (asset === null || start >= asset.sizeBytes || length <= 0) return Buffer.alloc(0)
      const end = Math.min(start + length, asset.sizeBytes) - 1
      return collectBytes(await assets.open(asset, { start, end }), MAX_RANGE_BYTES)
    }
  })
}
