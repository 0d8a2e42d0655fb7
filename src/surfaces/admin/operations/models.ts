import type { FastifyInstance } from 'fastify'
import { ServiceError } from '../../../domain/errors.ts'
import { ADMIN_PATH, type AdminKit, send } from '../admin-operation.ts'

export type ModelReload =
  | { readonly outcome: 'reloaded'; readonly models: number }
  | { readonly outcome: 'refused'; readonly problems: readonly { readonly file: string; readonly problem: string }[] }

export interface ReloadModelsDeps {
  readonly kit: AdminKit
  readonly reload: () => Promise<ModelReload>
}

// A catalogue that was mangled as a whole has hundreds; `atelier models lint` shows them all.
const MAX_TOLD = 20

/** Exchanges the catalogue of models, all of it or nothing. */
export function reloadModels(app: FastifyInstance, { kit, reload }: ReloadModelsDeps): void {
  app.post(`${ADMIN_PATH}/models/reload`, async (request, reply) => {
    const found = await reload()
    if (found.outcome === 'refused') throw new ServiceError('invalid_field', toMessage(found.problems))
    const { models } = found
    await kit.note(request, { action: 'models.reload', subject: 'models', details: { models } })
    return send(reply, 200, { models })
  })
}

function toMessage(problems: Extract<ModelReload, { outcome: 'refused' }>['problems']): string {
  const told = problems.slice(0, MAX_TOLD).map(({ file, problem }) => `${file}: ${problem}`)
  const rest = problems.length > MAX_TOLD ? `; and ${problems.length - MAX_TOLD} more` : ''
  return `the catalogue has mistakes and was not exchanged: ${told.join('; ')}${rest}`
}
