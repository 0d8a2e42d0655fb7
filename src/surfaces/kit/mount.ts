import type { FastifyInstance } from 'fastify'

/** Registers routes below a prefix, in a context of their own: hooks that `register` adds stay inside. */
export function mount(app: FastifyInstance, prefix: string, register: (mounted: FastifyInstance) => void): void {
  app.register(
    (mounted, _options, done) => {
      register(mounted)
      done()
    },
    { prefix },
  )
}
