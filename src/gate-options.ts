/** Who is let in, by the configuration: which hosts and origins, which credentials, which sessions. */
import type { Config } from './config/config.ts'
import type { HttpParts } from './http-parts.ts'
import { createDeploymentHosts, type DeploymentHosts } from './surfaces/kit/guards/deployment-address.ts'
import type { GateOptions } from './surfaces/kit/guards/gate.ts'

export function toGateOptions(config: Config, parts: HttpParts): GateOptions {
  const { secrets, authenticate, shared } = parts
  const { http } = config
  return {
    brands: http.brand,
    bindHost: http.host,
    hasCredentials: shared !== null || secrets.token !== null,
    authenticate,
    resume: createResume(parts, http.mountPrefix),
    ...(parts.overrides.authenticate === undefined && {
      isWelcome: shared?.isWelcome,
      onCredentialsChanged: shared?.onCredentialsChanged,
    }),
    allowedHosts: http.allowedHosts,
    corsOrigins: http.corsOrigins,
    publicUrl: http.publicUrl,
    mountPrefix: http.mountPrefix,
    trustedProxies: http.trustedProxies,
    deploymentHosts: toDeploymentHosts(config.deployments),
  }
}

function toDeploymentHosts(config: Config['deployments']): DeploymentHosts | null {
  if (config === null || config.domain === null) return null
  return createDeploymentHosts({ domain: config.domain, stagingLabel: config.stagingLabel })
}

/**
 * The caller of a session; it counts as one request of its account, as with any other credential. A page of small pictures is one
 * look of a person, though, and must not use up what the programs of that account may ask.
 */
function createResume({ signIn, shared }: HttpParts, mountPrefix: string): GateOptions['resume'] {
  const pictures = [`${mountPrefix}/console/v1/thumbnails/`, '/api/view?']
  return async (text, { url }) => {
    const session = await signIn.openAccount(text)
    if (session === null) return null
    return shared === null || pictures.some((start) => url?.startsWith(start))
      ? session.caller
      : shared.countRequest(session.caller)
  }
}
