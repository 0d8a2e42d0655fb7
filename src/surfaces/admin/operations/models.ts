import type { FastifyInstance } from 'fastify'
import { ServiceError } from '../../../domain/errors.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import { ADMIN_PATH, type AdminKit } from '../admin-operation.ts'

type ModelReload =
  | { readonly outcome: 'reloaded'; readonly models: number }
  | { readonly outcome: 'refused'; readonly problems: readonly { readonly file: string; readonly problem: string }[] }

interface ReloadModelsDeps {
  readonly kit: AdminKit
  readonly reload: () => Promise<ModelReload>
}

// A wholly broken catalogue has hundreds; `atelier models lint` shows them all.
const MAX_SHOWN_PROBLEMS = 20

/** Reads the catalogue of models again and exchanges all of it, or nothing when it has a mistake. */
export function reloadModels(app: FastifyInstance, { kit, reload }: ReloadModelsDeps): void {
  app.post(`${ADMIN_PATH}/models/reload`, needs('operator'), async (request, reply) => {
    const found = await reload()
    if (found.outcome === 'refused') throw new ServiceError('invalid_field', toMessage(found.problems))
    const { models } = found
    await kit.note(request, { action: 'models.reload', subject: 'models', details: { models } })
    return sendJson(reply, 200, { models })
  })
}

function toMessage(problems: Extract<ModelReload, { outcome: 'refused' }>['problems']): string {
  const shown = problems.slice(0, MAX_SHOWN_PROBLEMS).map(({ file, problem }) => `${file}: ${problem}`)
  const rest = problems.length > MAX_SHOWN_PROBLEMS ? `; and ${problems.length - MAX_SHOWN_PROBLEMS} more` : ''
  return `the catalogue has mistakes and was not exchanged: ${shown.join('; ')}${rest}`
}
