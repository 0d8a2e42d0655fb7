/** The budgets of any account, for whoever runs the service: theirs, and those that the account made itself. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import type { BudgetOwner, Budgets } from '../../../domain/credits/budgets/manage-budgets.ts'
import { toBudgetEdit, toBudgetView, toBudgetWish } from '../../kit/budget-view.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, sendJson } from '../../kit/request.ts'
import { ADMIN_PATH, type AdminKit, readParameters } from '../admin-operation.ts'
import { mustFindAccount } from './accounts.ts'

interface BudgetOperationDeps {
  readonly kit: AdminKit
  readonly accounts: Pick<Accounts, 'find'>
  readonly budgets: Budgets
}

const PATH = `${ADMIN_PATH}/accounts/:id/budgets`
const ROUTE = `${PATH}/:budget`

function budgetOf(request: FastifyRequest): string {
  return (request.params as { readonly budget: string }).budget
}

function ownerOf({ kit, accounts }: BudgetOperationDeps, request: FastifyRequest): BudgetOwner {
  const { id: accountId } = mustFindAccount(accounts, idOf(request))
  return { accountId, as: 'operator', actor: kit.actorOf(request) }
}

export function listAccountBudgets(app: FastifyInstance, deps: BudgetOperationDeps): void {
  app.get(PATH, needs('operator'), async (request, reply) => {
    readParameters(request, [])
    const found = await deps.budgets.list(ownerOf(deps, request).accountId)
    return sendJson(reply, 200, { budgets: found.map(toBudgetView) })
  })
}

export function createAccountBudget(app: FastifyInstance, deps: BudgetOperationDeps): void {
  app.post(PATH, needs('operator'), async (request, reply) => {
    const owner = ownerOf(deps, request)
    const body = await deps.kit.readBody<JsonObject>(request, 'NewBudget')
    return sendJson(reply, 201, toBudgetView(await deps.budgets.create(owner, toBudgetWish(body))))
  })
}

export function updateAccountBudget(app: FastifyInstance, deps: BudgetOperationDeps): void {
  app.patch(ROUTE, needs('operator'), async (request, reply) => {
    const owner = ownerOf(deps, request)
    const body = await deps.kit.readBody<JsonObject>(request, 'BudgetChange')
    return sendJson(reply, 200, toBudgetView(await deps.budgets.change(owner, budgetOf(request), toBudgetEdit(body))))
  })
}

export function deleteAccountBudget(app: FastifyInstance, deps: BudgetOperationDeps): void {
  app.delete(ROUTE, needs('operator'), async (request, reply) => {
    await deps.budgets.remove(ownerOf(deps, request), budgetOf(request))
    return reply.code(204).send()
  })
}
