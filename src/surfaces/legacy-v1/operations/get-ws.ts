/** The address of the socket, asked for without a handshake: it says what to send instead. Handshakes never come here. */
import { ServiceError } from '../../../domain/errors.ts'
import type { Api } from '../legacy-operation.ts'

export function getWs(api: Api): void {
  api.both('GET', '/ws', async () => {
    throw new ServiceError('invalid_request', 'this address speaks WebSocket only: send a handshake (RFC 6455)')
  })
}
