import type { KeyStore } from '../../../../domain/accounts/key-store.ts'
import type { StoreChannels } from './store-channels.ts'

export function createKeyStore({ write, read }: StoreChannels): KeyStore {
  return {
    insert: (key) => write.call('insertApiKey', key),
    rotate: ({ keyId, digest, previousUntil }) =>
      write.call('rotateApiKey', { keyId, digest, previousUntil: previousUntil.getTime() }),
    revoke: (keyId, at) => write.call('revokeApiKey', { keyId, at: at.getTime() }),
    touch: async (uses) => {
      if (uses.length === 0) return
      await write.call(
        'touchApiKeys',
        uses.map(({ keyId, at }) => [keyId, at.getTime()] as const),
      )
    },
    find: (keyId) => read.call('findApiKey', keyId),
    list: (accountId) => read.call('listApiKeys', accountId),
    changedAfter: (version, limit) => read.call('changedApiKeys', { version, limit }),
  }
}
