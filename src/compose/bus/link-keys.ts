/** The keys by which processes of one service know each other on their live links. */
import type { Secrets } from '../../config/secrets.ts'

/** Newest first. */
export function toLinkKeys({ secretKey, formerSecretKeys }: Pick<Secrets, 'secretKey' | 'formerSecretKeys'>) {
  return [...(secretKey === null ? [] : [secretKey]), ...formerSecretKeys].map((key) => key.reveal())
}
