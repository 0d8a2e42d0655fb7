/** Whose files these are is decided by the credential: to a client there is one user, and it is there already. */
import { ServiceError } from '../../../domain/errors.ts'
import { type Api, type OperationDeps, sendJson, sendJsonText } from '../legacy-operation.ts'
import { readLooseObject } from '../lenient-body.ts'

const MAX_NAME_LENGTH = 64

export function users(api: Api, { newPromptId, limits }: OperationDeps): void {
  api.both('GET', '/users', async (_request, reply) => sendJson(reply, { storage: 'server', migrated: true }))
  api.both('POST', '/users', async (request, reply) => {
    const { username } = await readLooseObject(request, limits.maxBodyBytes)
    const name = typeof username === 'string' ? username.replace(/[^\w-]/g, '').slice(0, MAX_NAME_LENGTH) : ''
    if (name === '') throw new ServiceError('invalid_request', 'username must be a name')
    // Nothing is kept under it: the next request is told apart by its credential, not by its name.
    return sendJsonText(reply, JSON.stringify(`${name}_${newPromptId()}`))
  })
  api.api('GET', '/user', async (_request, reply) => sendJson(reply, { status: 'active' }))
}
