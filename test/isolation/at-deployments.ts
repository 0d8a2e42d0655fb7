/** The same case below somebody else's deployment, by path and by host, against one that was never there. */
import type { IsolationCase, IsolationRequest } from './surface.ts'
import type { World } from './world.ts'

export function atDeployments(each: IsolationCase, { deployment }: World): IsolationCase[] {
  const nowhere = 'x'.repeat(deployment.length)
  const below = (id: string, request: IsolationRequest) => ({ ...request, path: `/deployment/${id}${request.path}` })
  const at = (id: string, { headers, ...request }: IsolationRequest) => ({
    ...request,
    headers: { ...headers, host: `${id}.run.example.test` },
  })
  return [
    {
      ...each,
      title: `${each.title}, below a deployment`,
      foreign: below(deployment, each.foreign),
      unknown: below(nowhere, each.unknown),
    },
    {
      ...each,
      title: `${each.title}, at a deployment’s host`,
      foreign: at(deployment, each.foreign),
      unknown: at(nowhere, each.unknown),
    },
  ]
}
