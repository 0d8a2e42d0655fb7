import type { TestApp } from './start-app.ts'

/** An asset of another account over bytes of this hash; its account is made with it. */
export async function addForeignAsset({ app }: TestApp, wireHash: string): Promise<string> {
  const id = crypto.randomUUID()
  const accountId = 'somebody'
  await app.store.accounts.put({ id: accountId, maxRunning: 1, maxQueued: 10 })
  const fields = { contentType: 'image/png', filePath: 'theirs.png', tags: [], createdAt: new Date(), expiresAt: null }
  await app.store.assets.mint({
    asset: { id, accountId, hash: wireHash.replace('blake3:', ''), sizeBytes: 1, jobId: null, ...fields },
    keyClaim: null,
    mustOwnHash: false,
  })
  return id
}
