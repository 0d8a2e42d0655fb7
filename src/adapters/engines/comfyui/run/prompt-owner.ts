/**
 * Under which names this process posts prompts. The name of a client begins with that of the service and that of the process, so
 * that prompts which a dead process left on a server can be told from those of others.
 */
import { randomUUID } from 'node:crypto'
import type { ComfyEngineOptions } from '../comfy-options.ts'

export interface PromptOwner {
  newClientId(): string
  /** Whether this process may end what dead ones left. */
  mayEndOrphans(): boolean
  /** Tells a prompt that is left over: it has the service's name, and its process is another one and does not live. */
  findOrphanRule(): Promise<(clientId: string) => boolean>
}

type OwnerOptions = Pick<ComfyEngineOptions, 'ownerId' | 'instanceId' | 'siblings'>

export function createPromptOwner({ ownerId, instanceId, siblings }: OwnerOptions): PromptOwner {
  const servicePrefix = ownerId === undefined ? 'atelier-' : `atelier-${ownerId}-`
  const ownPrefix = `${servicePrefix}${instanceId ?? randomUUID()}-`
  return {
    newClientId: () => `${ownPrefix}${randomUUID()}`,
    mayEndOrphans: () => ownerId !== undefined && siblings?.mayEndOrphans() !== false,
    async findOrphanRule() {
      const live = (await siblings?.findLive()) ?? new Set()
      const livePrefixes = [ownPrefix, ...[...live].map((id) => `${servicePrefix}${id}-`)]
      return (clientId) =>
        clientId.startsWith(servicePrefix) && !livePrefixes.some((prefix) => clientId.startsWith(prefix))
    },
  }
}
