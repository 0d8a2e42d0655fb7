/** Releases that are made on machines that joined: taking what waits, and saying how it goes. */
import type { FastifyInstance } from 'fastify'
import type { BuiltRelease } from '../../../domain/environments/builder.ts'
import { targetText } from '../../../domain/environments/definition.ts'
import type { ReleaseLock } from '../../../domain/environments/lock.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { BuildMove, OfferedBuild } from '../../../domain/workers/worker-builds.ts'
import { needs } from '../../kit/guards/routes.ts'
import { sendJson } from '../../kit/request.ts'
import { WORKER_PATH, type WorkerKit } from '../worker-operation.ts'

interface BuildDeps {
  readonly kit: WorkerKit
}

interface ClaimBody {
  readonly lease_id: string
  readonly targets: readonly string[]
}

interface MoveBody {
  readonly lease_id: string
  readonly move: BuildMove['move']
  readonly text?: string
  readonly lock?: ReleaseLock
  readonly built?: {
    readonly archive_sha256: string
    readonly size_bytes: number
    readonly classes: BuiltRelease['classes']
  }
}

// A lock names every package with all its hashes.
const MAX_MOVE_BYTES = 8 * 1024 * 1024

export function claimBuild(app: FastifyInstance, { kit }: BuildDeps): void {
  app.post(`${WORKER_PATH}/builds/claims`, needs('worker'), async (request, reply) => {
    const worker = kit.workerOf(request)
    kit.gateway.builds.mustBuild(worker)
    const { lease_id: leaseId, targets } = await kit.readBody<ClaimBody>(request, 'BuildClaim')
    const wanted = { leaseId, targets }
    const build = await kit.gateway.builds.claim(worker, kit.instanceOf(request), wanted)
    return build === null ? reply.code(204).send() : sendJson(reply, 200, toOffer(build))
  })
}

function toOffer({ release, artifact, lock, quota: { maxBytes, held }, links }: OfferedBuild) {
  const models = new Map(held.flatMap((each) => each.models).map((model) => [model.sha256, model]))
  return {
    ...{ artifact_id: artifact.id, target: targetText(artifact.target), release_id: release.id },
    ...{ definition: release.definition, lock, links },
    // What the account has already, without saying which releases.
    quota: {
      max_bytes: maxBytes,
      held_bytes: held.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      held_models: [...models.values()].map(({ sha256, sizeBytes }) => ({ sha256, size_bytes: sizeBytes })),
    },
  }
}

export function moveBuild(app: FastifyInstance, { kit }: BuildDeps): void {
  app.post(`${WORKER_PATH}/builds/:id/moves`, needs('worker'), async (request, reply) => {
    const worker = kit.workerOf(request)
    // Who may not is told so whatever the body holds.
    kit.gateway.builds.mustBuild(worker)
    const body = await kit.readBody<MoveBody>(request, 'BuildMove', MAX_MOVE_BYTES)
    const { id: artifactId } = request.params as { readonly id: string }
    const named = { artifactId, leaseId: body.lease_id }
    const { isHeld, isPassedOn } = await kit.gateway.builds.write(worker, named, toMove(body))
    return sendJson(reply, 200, { held: isHeld, ...(isPassedOn && { passed_on: true }) })
  })
}

/** Throws invalid_field for a move without what belongs to it. */
function toMove({ move, text, lock, built }: MoveBody): BuildMove {
  const missing = (field: string) => new ServiceError('invalid_field', `${field} is missing: ${move} needs it`)
  switch (move) {
    case 'renew':
    case 'give_back':
      return { move }
    case 'log':
    case 'fail':
    case 'pass_on':
      if (text === undefined) throw missing('text')
      return move === 'log' ? { move, text } : { move, reason: text }
    case 'lock':
      if (lock === undefined) throw missing('lock')
      return { move, lock }
    case 'succeed': {
      if (lock === undefined) throw missing('lock')
      if (built === undefined) throw missing('built')
      const { archive_sha256: archiveSha256, size_bytes: sizeBytes, classes } = built
      return { move, built: { lock, archiveSha256, sizeBytes, classes } }
    }
  }
}
