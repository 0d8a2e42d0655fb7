/**
 * Which methods exist under a path, for 405 and `Allow`. As in OpenAPI, a path without parameters wins over one with them, so
 * `/assets/from-hash` is not also an `/assets/{id}`; a router alone would let the second one answer what the first lacks.
 */
import type { FastifyInstance } from 'fastify'
import { ServiceError } from '../../../domain/errors.ts'
import { needs, type Right } from '../guards/rights.ts'

export interface PathMethods {
  /** With parameters in braces. */
  readonly template: string
  readonly methods: readonly string[]
}

/** Methods of a path below the mount; empty when the path is none of ours. */
export type MethodsOf = (path: string) => readonly string[]

export function compileMethods(paths: readonly PathMethods[]): MethodsOf {
  const routes = paths
    .map(({ template, methods }) => ({ pattern: toPattern(template), methods, parameters: countParameters(template) }))
    .sort((left, right) => left.parameters - right.parameters)
  return (path) => {
    const found = routes.filter((route) => route.pattern.test(path))
    const nearest = found.filter(({ parameters }) => parameters === found[0].parameters)
    const methods = new Set(nearest.flatMap((route) => route.methods))
    // Whatever can be read can be asked about, except a stream, which would never end.
    if (methods.has('GET') && !path.endsWith('/events')) methods.add('HEAD')
    return [...methods].sort()
  }
}

/** Routes that keep a path with parameters from answering for one without. */
export function refuseShadowedMethods(
  app: FastifyInstance,
  { paths, methodsOf }: { readonly paths: readonly PathMethods[]; readonly methodsOf: MethodsOf },
  right: Right,
): void {
  for (const { template } of paths) {
    if (countParameters(template) > 0) continue
    const own = methodsOf(template)
    const others = paths.filter((other) => other.template !== template && toPattern(other.template).test(template))
    const method = [...new Set(others.flatMap(({ methods }) => methods))].filter((one) => !own.includes(one))
    if (method.length === 0) continue
    app.route({
      method,
      url: template,
      ...needs(right),
      handler(request, reply) {
        reply.header('Allow', own.join(', '))
        throw wrongMethod(request.method, own)
      },
    })
  }
}

export function wrongMethod(method: string, allowed: readonly string[]): ServiceError {
  return new ServiceError('wrong_method', `${method} is not possible here; use ${allowed.join(', ')}`)
}

function toPattern(template: string): RegExp {
  return new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`)
}

function countParameters(template: string): number {
  return template.split('{').length - 1
}
