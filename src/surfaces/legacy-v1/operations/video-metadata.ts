/** What the editor asks about a video before it shows it frame by frame. */
import { readVideoFacts } from '../../../../lib/files/video-facts.ts'
import { mustRead } from '../../../domain/assets/asset-content.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { collectBytes } from '../files/picture-bytes.ts'
import { type Api, type OperationDeps, queryOf, sendJson } from '../legacy-operation.ts'
import { readLocation } from './view.ts'

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
