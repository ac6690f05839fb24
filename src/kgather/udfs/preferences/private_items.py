import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
import numpy as np
from kgather.udfs.preferences import _bounded_sums as bs
from kgather.udfs.preferences._accounting import Charge, Noise, rho_of
from kgather.udfs.preferences.model import Preferences

@dataclass
class Rules:
    users: float=.02
    median: float=.02
    levels: float=.15      # share of the rest for first pass
    pairs: float=.25
    rounds: int=2
    factors: bool=True
    alpha: float=.5
    floor: float=1.0       # times sigma of counts
    q: int=1000
    kappa: float=.37
    kappa_level: float=.6
    tl: float=.5   # in s
    tf: float=.25
    level_pen: float=8.5
    factor_pen: float=2.0
    final_level_pen: float=8.5
    final_factor_pen: float=3.0
    phi: float=.3
    proc: float=.1
    longest: float=1.6  # times sqrt rank
    reach: float=2.5  # in s
    pop: bool=True
    tlpop: float=1.0
    last: float=1.0   # share of the last round to others
    free: int=0
    capmul: float=1.0

class Work:
    def __init__(self, mat, scale, eps, delta, seed, rank, threads, rules, verbose=False):
        self.m=mat.n_items; self.mat=mat; self.low,self.high=scale; self.R=rules; self.rank=rank; self.threads=threads
        self.half=(self.high-self.low)/2; self.mid=(self.high+self.low)/2
        self.noise=Noise(seed if np.isfinite(eps) else None)
        self.rho=rho_of(eps,delta) if np.isfinite(eps) else 1e9
        self.pool=ThreadPoolExecutor(threads) if threads>1 else None
        self.charges=[]; self.verbose=verbose
        self.P=(mat.indptr,mat.items,mat.values,self.low,self.high)
    def measure(self,what,rho,kernel,shape):
        total=bs.add_up(kernel,self.mat.indptr,shape,self.threads,self.pool)
        dev=bs.SENSITIVITY/math.sqrt(2*rho)
        self.charges.append(Charge(what,bs.SENSITIVITY,dev,int(np.prod(shape))))
        if not self.noise: dev=1e-9
        total+=self.noise.draw(what,dev,shape)
        return total,dev
    def say(self,*a):
        if self.verbose: print('   ',*a,flush=True)
    def users(self,rho):
        t,sd=self.measure('users',rho,lambda lo,hi,out: bs.add_users(lo,hi,self.mat.indptr,self.mat.values,self.low,self.high,out),(bs.USER_BINS+2,))
        h=t[:bs.USER_BINS]/math.sqrt(.5); sdh=sd/math.sqrt(.5)
        # bins below 3 sd are noise
        h=np.where(h>2*sdh,h,0); 
        top=int(2*np.log2(max(self.m,2)))+1; h[top:]=0
        self.n=max(h.sum(),10.)
        if h.sum()<=0: h[8]=self.n
        self.hist=h; self.size=2.0**((np.arange(bs.USER_BINS)+.5)/2)
        self.size=np.minimum(self.size,self.m)
        self.nnz=(self.hist*self.size).sum()
        self.mean=self.mid+self.half*float(np.clip(t[-2]*2/self.n,-.9,.9))
        self.s=self.half*math.sqrt(np.clip(t[-1]*2/self.n,.02,.5))*.93
        self.say('n',self.n,'nnz',self.nnz,'mean',self.mean,'s',self.s)
    def cap(self,q,sigma,D1,D2,x2=1.0):
        """cap minimizing noise; q: mean squared length a rating. returns cap, Eh, Eh2/Eh"""
        best=None
        for c in self.size[self.hist>0]:
            cap=1/np.sqrt(c*q)*self.R.capmul
            h=np.minimum(cap,1/np.sqrt(self.size*q)); w=self.hist*self.size; w=w/w.sum()
            e1=(w*h).sum(); e2=(w*h*h).sum()
            v=(sigma**2*D1+self.s**2*D2*e2)/e1**2
            if best is None or v<best[0]: best=(v,cap,e1,e2/e1)
        return best[1:]
    def gains(self,sd_c):
        C=np.maximum(self.C,self.R.floor*sd_c+1)
        g=C**-self.R.alpha
        return g/np.sqrt((C*g*g).sum()/C.sum())
    def first_levels(self,rho):
        R=self.R; m=self.m
        self.level=np.full(m,self.mean); self.F=np.zeros((m,0))
        kappa=R.kappa_level*self.s; reach=R.reach*self.s
        sigma=1/math.sqrt(2*rho) if self.noise else 0
        q=kappa**2+self.s**2
        Cbar=self.nnz/m*4
        cap,eh,hh=self.cap(q,sigma,1/Cbar**2,1/Cbar)
        t,sd=self.measure('levels 1',rho,lambda lo,hi,out: bs.add_moments(lo,hi,*self.P,self.level,self.F,(R.level_pen,0.),np.ones(m),kappa,reach,1.,cap,out),(m,2))
        A=t[:,0]/kappa; sa=sd/kappa; b=t[:,1]
        self.C=A/eh; self.Csd=sa/eh   # raters
        self.say('cap',1/cap**2/q,'Csd',self.Csd,'mean C',self.nnz/m)
        # effective counts
        B=np.maximum(A,.5*sa)/hh; grad=b/hh; nz=sd/hh
        tl=R.tl*self.s
        pen=self.s**2/tl**2*np.ones(m)
        H=B+pen
        d=grad/np.maximum(B,1e-9)
        if R.pop:
            lc=np.log(np.maximum(self.C,self.Csd+1)); 
            N=(nz/B)**2; w=1/(tl**2+N+self.s**2/B)
            X=np.column_stack([np.ones(m),lc-np.average(lc,weights=w)]); XtX=(X*w[:,None]).T@X+np.diag([0,1/ (tl**2)*1.0])
            coef=np.linalg.solve(XtX,(X*w[:,None]).T@d); mu=X@coef; self.say('pop',coef)
            tl=tl*R.tlpop
        else: mu=np.zeros(m)
        grad=grad-B*mu
        dl=grad/H; N=(nz/H)**2; Pv=tl**2*np.ones(m); G=Pv/(Pv+N)
        self.mu=self.level+mu
        self.level=self.level+mu+G*dl
        self.P_level=(1-G)*Pv
    def round(self,rho,last,name):
        R=self.R; m=self.m; r=self.F.shape[1]; c=r+1; npair=c*(c+1)//2
        if r: kappa=R.kappa*self.s/ (1 if r==0 else 2)
        else: kappa=R.kappa_level*self.s*.5
        longest=R.longest*math.sqrt(max(r,1)); reach=R.reach*self.s
        g=self.gains(self.Csd); sigma=1/math.sqrt(2*rho) if self.noise else 0
        x2=1+r; q=kappa**2*(x2*x2*.6)+self.s**2*x2
        C=np.maximum(self.C,self.Csd+1); wC=C/C.sum()
        cap,eh,hh=self.cap(q,sigma,(wC/(g*C)**2).sum()/x2,(wC/C).sum())
        pen=(R.level_pen,R.factor_pen*self.s**2)
        t,sd=self.measure(name,rho,lambda lo,hi,out: bs.add_moments(lo,hi,*self.P,self.level,self.F,pen,g,kappa,reach,longest,cap,out),(m,npair+c))
        A=np.zeros((m,c,c)); at=0
        for a in range(c):
            for b in range(a+1):
                A[:,a,b]=A[:,b,a]=t[:,at]/kappa; at+=1
        sa=sd/kappa; b=t[:,npair:]
        # counts: combine
        prior=np.maximum(self.C,0)*g*eh; vp=(self.Csd*g*eh)**2+ (0.1*prior)**2; vm=sa**2
        a0=(prior*vm+A[:,0,0]*vp)/(vm+vp); a0=np.maximum(a0,.3*np.sqrt(vm*vp/(vm+vp)))
        S=A.sum(0)/A[:,0,0].sum(); ev,Q=np.linalg.eigh((S+S.T)/2); S=(Q*np.maximum(ev,.02))@Q.T
        self.say(name,'S',np.round(np.diag(S),3),np.round(S[0],3),'cap',1/cap**2/q, 'sd/(gC)',np.average(sd/(g*C*eh),weights=C))
        base=a0[:,None,None]*S
        sh=(R.phi*a0)**2; sh=sh/(sh+sa**2)
        A0=base+sh[:,None,None]*(A-A[:,:1,:1]*S)
        if r:
            ev,Q=np.linalg.eigh(A0); ev=np.maximum(ev,.1*a0[:,None]*np.linalg.eigvalsh(S)[0]); A0=np.einsum('mij,mj,mkj->mik',Q,ev,Q)
        w=g*hh; B=A0/w[:,None,None]
        T=np.diag([ (R.tl*self.s)**2]+[(R.tf*self.s)**2]*r); Ti=np.linalg.inv(T)*self.s**2
        v=np.column_stack([self.level,self.F]); mu=np.column_stack([self.mu,np.zeros((m,r))])
        grad=b/w[:,None]-(v-mu)@Ti
        H=B+Ti; Hi=np.linalg.inv(H); d=np.einsum('mij,mj->mi',Hi,grad)
        N=np.einsum('mij,mkj->mik',Hi,Hi)*((sd/w)**2)[:,None,None]
        G=self.Pm@np.linalg.inv(self.Pm+N)
        v=v+np.einsum('mij,mj->mi',G,d)
        self.Pm=(np.eye(c)-G)@self.Pm; self.Pm=(self.Pm+self.Pm.transpose(0,2,1))/2+R.proc*T
        self.level,self.F=v[:,0].copy(),v[:,1:].copy()
    def pairs(self,rho):
        R=self.R; m=self.m; q=min(R.q,m); r=self.rank
        top=np.sort(np.argsort(-self.C,kind='stable')[:q]); places=np.full(m,-1,np.int32); places[top]=np.arange(q)
        g=self.gains(self.Csd); C=np.maximum(self.C,self.Csd+1)
        t,sd=self.measure('pairs',rho,lambda lo,hi,out: bs.add_pairs(lo,hi,*self.P,self.level,R.level_pen,places,g,R.reach*self.s,1e300,out),(q,q))
        t=np.tril(t,-1); t=t+t.T
        ev,Q=np.linalg.eigh(t); ev,Q=ev[::-1][:r],Q[:,::-1][:,:r]
        edge=2*sd*math.sqrt(q)
        # true eigenvalue: x + sd^2 q / x = ev
        tr=np.where(ev>edge,(ev+np.sqrt(np.maximum(ev**2-edge**2,0)))/2,0)
        cos2=np.where(tr>0,1-sd**2*q/np.maximum(tr,1e-9)**2,0)
        self.say('pairs ev',np.round(ev,1),'edge',edge,'cos2',np.round(cos2,2))
        wh=self.hist*self.size**2; scale=1/(np.sqrt(.5)*self.s**2)*self.hist.dot(self.size)/self.nnz**2  # h~sqrt2/(n g2 e2)
        scale=np.sqrt(2)/self.s**2/self.nnz
        f=Q*np.sqrt(np.maximum(tr,1e-9)/scale)*np.sqrt(np.maximum(cos2,0)) if self.noise else Q*np.sqrt(tr/scale)
        self.F=np.zeros((m,r)); self.F[top]=f/(g[top]*C[top])[:,None]
        self.say('F sd',np.sqrt(np.average(self.F[top]**2,axis=0,weights=C[top])))
        lim=2*self.s; self.F=np.clip(self.F,-lim,lim)
    def init_P(self):
        r=self.F.shape[1]; R=self.R
        self.Pm=np.zeros((self.m,r+1,r+1)); self.Pm[:,0,0]=self.P_level+R.proc*(R.tl*self.s)**2
        for a in range(r): self.Pm[:,a+1,a+1]=(R.tf*self.s)**2
    def fold(self,pl,pf):
        n=self.mat.n_users; r=self.F.shape[1]; l=np.zeros(n,np.float32); f=np.zeros((n,r),np.float32)
        for lo in (0,): bs.fold_all(0,n,*self.P,self.level,self.F,(pl,pf),l,f)
        return l,f
    def move(self,rho,pen):
        bins=512; spread=2*self.half*.5
        t,sd=self.measure('gaps',rho,lambda lo,hi,out: bs.add_gaps(lo,hi,*self.P,self.level,self.F,pen,spread,5.,out),(bins,))
        cum=np.cumsum(t); k=int(np.searchsorted(np.maximum.accumulate(cum),cum[-1]/2)); sh=(2*(k+.5)/bins-1)*spread
        self.say('median',sh); self.level=self.level+np.clip(sh,-.3*self.half,.3*self.half)
    def learn(self):
        R=self.R; rho=self.rho
        self.users(R.users*rho); left=1-R.users-R.median
        fac=R.factors
        lv=R.levels*left; self.first_levels(lv*rho)
        left-=lv
        if fac:
            pr=R.pairs*left; self.pairs(pr*rho); left-=pr
        self.init_P()
        for k in range(R.rounds): self.round(left/R.rounds*rho,k==R.rounds-1,f'round {k}')
        if R.free: self.free()
        pen=(R.final_level_pen,R.final_factor_pen*self.s**2)
        if R.median: self.move(R.median*rho,pen)
        l,f=self.fold(*pen)
        r=self.F.shape[1]
        if r<self.rank: f=np.column_stack([f,np.zeros((len(l),self.rank-r),np.float32)]); self.F=np.column_stack([self.F,np.zeros((self.m,self.rank-r))])
        if self.pool: self.pool.shutdown()
        return Preferences(l,f,self.level.astype(np.float32),self.F.astype(np.float32))
    def free(self):
        C=np.maximum(self.C,self.Csd+1); lc=np.log(C); w=C/C.sum()
        cols=[]
        x=lc-(w*lc).sum(); cols.append(x/np.sqrt((w*x*x).sum()))
        y=self.level-(w*self.level).sum(); y=y-cols[0]*(w*cols[0]*y).sum(); cols.append(y/np.sqrt((w*y*y).sum()))
        self.F=np.column_stack([self.F]+[c*self.s*.2 for c in cols[:self.R.free]])
