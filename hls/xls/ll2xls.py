#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# acyclic LLVM IR function -> XLS IR (text). usage: ll2xls.py in.ll func fp.ir out.ir
import sys,re
import llvmlite.binding as L
try: L.initialize()
except Exception: pass
ll,fn,fpir,out=sys.argv[1:5] # fp.ir '-': integers alone
mod=L.parse_assembly(open(ll).read()); f=mod.get_function(fn)
o=[]; n=[0]; val={}
def w(t):
    t=str(t)
    if t=='float': return 32
    if t[0]=='i': return int(t[1:])
    raise Exception('type '+t)
def emit(wd,e,ty=None):
    n[0]+=1; nm=f'v{n[0]}'; o.append(f'  {nm}: {ty or "bits[%d]"%wd} = {e}'); return nm
lit={}
def const(wd,v):
    v&=(1<<wd)-1
    return emit(wd,f'literal(value={v})')
import struct
def V(x):
    s=str(x).strip()
    if x.name and x.name in val and not x.is_constant: return val[x.name]
    m=re.match(r'(i\d+|float) (\S+)$',s)
    if m:
        t,c=m.groups(); wd=w(t)
        if c=='true': return const(1,1)
        if c=='false': return const(1,0)
        if c in('undef','poison','zeroinitializer'): return const(wd,0)
        if t=='float':
            d=struct.unpack('>d',bytes.fromhex(c[2:].zfill(16)))[0] if c.startswith('0x') else float(c)
            return const(32,struct.unpack('>I',struct.pack('>f',d))[0])
        return const(wd,int(c))
    raise Exception('value '+s)
args=[]; outs={}
for i,a in enumerate(f.arguments):
    if str(a.type).endswith('*') or str(a.type)=='ptr': outs[a.name]=None
    else: args.append((a.name,w(a.type))); val[a.name]='a%d'%i
params=', '.join(f'{val[a]}: bits[{x}]' for a,x in args)
blocks=list(f.blocks); cond={}  # block -> list of (pred, cond)
edges={}
def AND(a,b): return b if a is None else (a if b is None else emit(1,f'and({a}, {b})'))
def OR(a,b): return None if a is None or b is None else emit(1,f'or({a}, {b})')
bc={}
def addedge(p,t,c):
    edges[(p,t)]=c if (p,t) not in edges else OR(edges[(p,t)],c)
done=set()
# llvm prints blocks in topological order for an acyclic function at -O2
CMP=dict(eq='eq',ne='ne',ult='ult',ule='ule',ugt='ugt',uge='uge',slt='slt',sle='sle',sgt='sgt',sge='sge')
first=True
for b in blocks:
    if first: here=None; first=False
    else:
        ins=[c for (p,t),c in edges.items() if t==b.name]; 
        if not ins: here=const(1,0)
        else:
            here=ins[0]
            for c in ins[1:]: here=OR(here,c)
    for i in b.instructions:
        op=i.opcode; s=str(i).strip(); ops=list(i.operands); nm=i.name
        if op in('add','sub','and','or','xor'): val[nm]=emit(w(i.type),f'{op}({V(ops[0])}, {V(ops[1])})')
        elif op=='mul': val[nm]=emit(w(i.type),f'umul({V(ops[0])}, {V(ops[1])})')
        elif op in('shl','lshr','ashr'): val[nm]=emit(w(i.type),'%s(%s, %s)'%({'shl':'shll','lshr':'shrl','ashr':'shra'}[op],V(ops[0]),V(ops[1])))
        elif op=='zext': val[nm]=emit(w(i.type),f'zero_ext({V(ops[0])}, new_bit_count={w(i.type)})')
        elif op=='sext': val[nm]=emit(w(i.type),f'sign_ext({V(ops[0])}, new_bit_count={w(i.type)})')
        elif op=='trunc': val[nm]=emit(w(i.type),f'bit_slice({V(ops[0])}, start=0, width={w(i.type)})')
        elif op in('bitcast','freeze'): val[nm]=V(ops[0])
        elif op=='icmp':
            p=re.search(r'icmp (?:samesign )?(\w+)',s).group(1); val[nm]=emit(1,f'{CMP[p]}({V(ops[0])}, {V(ops[1])})')
        elif op=='select': val[nm]=emit(w(i.type),f'sel({V(ops[0])}, cases=[{V(ops[2])}, {V(ops[1])}])')
        elif op=='fmul': val[nm]=emit(32,f'invoke({V(ops[0])}, {V(ops[1])}, to_apply=__fp__fmul)')
        elif op=='fadd': val[nm]=emit(32,f'invoke({V(ops[0])}, {V(ops[1])}, to_apply=__fp__fadd)')
        elif op=='fneg': val[nm]=emit(32,f'xor({V(ops[0])}, {const(32,0x80000000)})')
        elif op=='fsub':
            t=emit(32,f'xor({V(ops[1])}, {const(32,0x80000000)})'); val[nm]=emit(32,f'invoke({V(ops[0])}, {t}, to_apply=__fp__fadd)')
        elif op=='call':
            c=re.search(r'@([\w.]+)\(',s).group(1)
            a=[V(x) for x in ops[:-1] if not (str(x).strip() in ('i1 true','i1 false') and ('ctlz' in c or 'abs' in c))]
            wd=w(i.type) if str(i.type)!='void' else 0
            mm=re.match(r'llvm\.(umin|umax|smin|smax)\.',c)
            if mm:
                k={'umin':'ult','umax':'ugt','smin':'slt','smax':'sgt'}[mm.group(1)]
                t=emit(1,f'{k}({a[0]}, {a[1]})'); val[nm]=emit(wd,f'sel({t}, cases=[{a[1]}, {a[0]}])')
            elif c.startswith('llvm.fshl'):
                k=int(re.search(r'i32 (\d+)\)',s).group(1)); t1=emit(wd,f'shll({a[0]}, {const(wd,k)})'); t2=emit(wd,f'shrl({a[1]}, {const(wd,wd-k)})'); val[nm]=emit(wd,f'or({t1}, {t2})')
            elif c.startswith('llvm.ctlz'):
                r=emit(wd,f'reverse({a[0]})'); h=emit(wd+1,f'one_hot({r}, lsb_prio=true)'); k=emit(0,f'encode({h})',ty='bits[%d]'%((wd).bit_length())); val[nm]=emit(wd,f'zero_ext({k}, new_bit_count={wd})')
            elif c.startswith('llvm.abs'):
                q=emit(wd,f'neg({a[0]})'); t=emit(1,f'slt({a[0]}, {const(wd,0)})'); val[nm]=emit(wd,f'sel({t}, cases=[{a[0]}, {q}])')
            elif c.startswith('llvm.assume') or c.startswith('llvm.lifetime') or c.startswith('llvm.dbg'): pass
            else: raise Exception('call '+c)
        elif op=='phi':
            inc=re.findall(r'\[ ([^,]+), %([\w.]+) \]',s)
            vs=[V(x) for x in ops] ; bl=[x[1] for x in inc]
            r=vs[-1]
            for v_,p in list(zip(vs,bl))[-2::-1]: r=emit(w(i.type),f'sel({edges[(p,b.name)]}, cases=[{r}, {v_}])')
            val[nm]=r
        elif op=='br':
            t=re.findall(r'label %([\w.]+)',s)
            if len(t)==1: addedge(b.name,t[0],here if here else const(1,1))
            else:
                c=V(ops[0]); nc=emit(1,f'not({c})'); addedge(b.name,t[0],AND(here,c)); addedge(b.name,t[1],AND(here,nc))
        elif op=='switch':
            t=re.match(r'switch i\d+ (\S+), label %([\w.]+)',s); cs=re.findall(r'i\d+ (-?\d+), label %([\w.]+)',s)
            x=V(ops[0]); wd=w(ops[0].type); rest=here
            for c,l in cs:
                q=emit(1,f'eq({x}, {const(wd,int(c))})'); addedge(b.name,l,AND(here,q)); nq=emit(1,f'not({q})'); rest=AND(rest,nq)
            addedge(b.name,t.group(2),rest)
        elif op=='store': outs[ops[1].name]=V(ops[0]); assert b is blocks[-1] or b.name==blocks[-1].name, 'store not in the last block'
        elif op=='ret': pass
        else: raise Exception(op+': '+s)
ov=list(outs.values())
ty='(%s)'%', '.join('bits[32]' for _ in ov)
body='\n'.join(o)
fp=open(fpir).read() if fpir!='-' else 'package p'
open(out,'w').write(fp.rstrip()+f'\n\ntop fn {fn}({params}) -> {ty} {{\n{body}\n  ret res: {ty} = tuple({", ".join(ov)})\n}}\n')
print('ops',len(o),'blocks',len(blocks))
